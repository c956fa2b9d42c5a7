#include "cli/mip_command.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "cli/mip_config.h"
#include "status/status.h"

namespace clrsampler {
namespace {

void AddProfile(CLI::App& command, MipConfig& config, const char* help) {
  command.add_option("--profile,-p", config.profile, help)->required()->type_name("FILE");
}

// Commands that read nothing but the profile also take it without an option.
void AddProfileAlone(CLI::App& command, MipConfig& config) {
  command.add_option("profile,--profile,-p", config.profile, "the profile (.mip)")->required()->type_name("FILE");
}

void AddLayout(CLI::App& command, MipConfig& config) {
  command
      .add_option("--mip-layout", config.layout,
                  "documented: addresses of 32 bits; llvm: of 64, as the format's first tool writes and reads them; "
                  "without it that of the profile that was read")
      ->check(CLI::IsMember({"documented", "llvm"}))
      ->type_name("LAYOUT");
}

void AddOutput(CLI::App& command, MipConfig& config) {
  command.add_option("--output,-o", config.output, "file for the text; without it standard output")->type_name("FILE");
}

void AddRegex(CLI::App& command, MipConfig& config) {
  command.add_option("--regex,-r", config.regex, "only functions with a name that this regular expression matches")
      ->type_name("RE");
}

void AddDebug(CLI::App& command, MipConfig& config) {
  command
      .add_option("--debug", config.debug, "the program or library of the profile, built with -g: source lines from it")
      ->type_name("FILE");
}

void AddJson(CLI::App& command, MipConfig& config) { command.add_flag("--json", config.json, "as JSON"); }

// Commands that print functions can print their source, too.
void AddFunctionsWithSource(CLI::App& command, MipConfig& config) {
  AddProfileAlone(command, config);
  AddRegex(command, config);
  AddDebug(command, config);
  AddJson(command, config);
  AddOutput(command, config);
}

struct Command {
  const char* name;
  const char* alias;  // of the format's first tool; nullptr: none
  const char* summary;
  void (*declare)(CLI::App&, MipConfig&);
  absl::Status (*run)(const MipConfig&);
  const char* examples;
};

constexpr Command kCommands[] = {
    {"create", nullptr, "make an empty profile from the map of an instrumented program",
     [](CLI::App& command, MipConfig& config) {
       AddProfile(command, config, "the profile to write (.mip)");
       command
           .add_option(
               "map", config.input,
               "the program or library itself, as it was linked, or its section __llvm_mipmap as a file (.mipmap)")
           ->required()
           ->type_name("MAP");
       AddLayout(command, config);
     },
     CreateMip,
     "Examples:\n"
     "  clrsampler mip create -p shop.mip ./shop                 from the program\n"
     "  clrsampler mip create -p shop.mip shop.mipmap            from its map"},
    {"merge", nullptr, "add the counters of runs, and other profiles, to a profile",
     [](CLI::App& command, MipConfig& config) {
       AddProfile(command, config, "the profile to add to (.mip); merging profiles only, it need not be there yet");
       command.add_option("inputs", config.inputs, "counters of runs (.mipraw), and profiles (.mip)")
           ->required()
           ->type_name("IN...");
       command.add_flag("--strict", config.strict,
                        "end with an error at the first file that can't be merged, and change nothing; without it such "
                        "files are left out and said");
       command.add_flag("--force", config.force, "merge profiles of other modules, too");
       AddLayout(command, config);
     },
     MergeIntoMip,
     "Examples:\n"
     "  clrsampler mip merge -p shop.mip run1.mipraw run2.mipraw\n"
     "  clrsampler mip merge -p all.mip host1.mip host2.mip      a sum of profiles"},
    {"show", nullptr, "print functions with their counts, blocks and source lines", AddFunctionsWithSource, ShowMip,
     "Examples:\n"
     "  clrsampler mip show -p shop.mip --regex '^Order'\n"
     "  clrsampler mip show -p shop.mip --debug ./shop           with source lines"},
    {"order", nullptr, "print functions that ran, the earliest first: an order file for linkers",
     [](CLI::App& command, MipConfig& config) {
       AddProfileAlone(command, config);
       AddRegex(command, config);
       AddJson(command, config);
       AddOutput(command, config);
     },
     PrintMipOrder,
     "Examples:\n"
     "  clrsampler mip order -p shop.mip -o shop.order\n"
     "  clang -ffunction-sections -fuse-ld=lld -Wl,--symbol-ordering-file,shop.order ..."},
    {"covered", nullptr, "print functions that ran, in the order of the profile",
     [](CLI::App& command, MipConfig& config) {
       AddProfileAlone(command, config);
       AddRegex(command, config);
       AddDebug(command, config);
       command.add_flag("--lines", config.lines, "their source lines instead, each once");
       command.add_flag("--paths", config.paths, "their source files instead, each once");
       AddJson(command, config);
       AddOutput(command, config);
     },
     PrintMipCovered,
     "Examples:\n"
     "  clrsampler mip covered -p shop.mip\n"
     "  clrsampler mip covered -p shop.mip --debug ./shop --paths  files whose code ran"},
    {"info", nullptr, "print a profile's totals",
     [](CLI::App& command, MipConfig& config) {
       AddProfileAlone(command, config);
       AddJson(command, config);
       AddOutput(command, config);
     },
     PrintMipInfo,
     "Examples:\n"
     "  clrsampler mip info -p shop.mip"},
    {"to-yaml", "mip2yaml", "write a profile as YAML or JSON, to be read and changed (also: mip2yaml)",
     AddFunctionsWithSource, MipToYaml,
     "Examples:\n"
     "  clrsampler mip to-yaml -p shop.mip -o shop.yaml"},
    {"from-yaml", "yaml2mip", "make a profile from such YAML or JSON (also: yaml2mip)",
     [](CLI::App& command, MipConfig& config) {
       AddProfile(command, config, "the profile to write (.mip)");
       command.add_option("input", config.input, "YAML or JSON; without it, or for -, standard input")->type_name("IN");
       AddLayout(command, config);
     },
     MipFromYaml,
     "Examples:\n"
     "  clrsampler mip from-yaml -p shop.mip shop.yaml"},
};

}  // namespace

absl::Status RunMip(const std::vector<std::string>& arguments) {
  CLI::App app("makes, merges and shows Machine IR Profiles (.mip), which compilers and linkers use", "clrsampler mip");
  MipConfig config;
  std::vector<CLI::App*> apps;
  for (const Command& command : kCommands) {
    CLI::App* added = apps.emplace_back(app.add_subcommand(command.name, command.summary));
    if (command.alias != nullptr) added->alias(command.alias);
    command.declare(*added, config);
    added->footer(command.examples);
  }
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  clrsampler mip create -p shop.mip ./shop                 ./shop was built with counters\n"
      "  clrsampler mip merge -p shop.mip *.mipraw                what its runs left behind\n"
      "  clrsampler mip show -p shop.mip\n"
      "  clrsampler mip order -p shop.mip -o shop.order           functions in the order in which they start");

  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 takes them
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {  // CLI11's way to report; nothing of ours throws
    if (error.get_exit_code() == 0) {       // --help
      app.exit(error);
      return absl::OkStatus();
    }
    std::string name = "clrsampler mip";
    for (const CLI::App* chosen : app.get_subcommands()) absl::StrAppend(&name, " ", chosen->get_name());
    return WithHint(absl::InvalidArgumentError(error.what()), absl::StrCat(name, " --help says what can stand there"));
  }
  for (size_t i = 0; i < apps.size(); ++i) {
    if (*apps[i]) return kCommands[i].run(config);
  }
  return absl::OkStatus();
}

}  // namespace clrsampler
