// r2r_check: does our reading of ReadyToRun images agree with the image, with crossgen2 and with a running runtime?
//
//   r2r_check [--references DIR]... coverage IMAGE...          every runtime function is owned and named
//   r2r_check [--references DIR]... map IMAGE R2RMAP           every row of crossgen2's map: address and full text
//   equal r2r_check [--references DIR]... jitdump DUMP MAPS          every [PreJIT] record of a run (jit-PID.dump and a
//   copy of
//                                                              /proc/PID/maps): owner and method equal
//   r2r_check live DUMP PID                                    every [PreJIT] record of a process that still runs, by
//                                                              the profiler's own source: full text equal
//   r2r_check il-maps IMAGE...                                 every method's IL map is whole
//   r2r_check il-map-entries IMAGE                             prints BEGIN IL:NATIVE... for each method with an IL
//   map:
//                                                              BEGIN is hexadecimal, the others decimal
//   r2r_check frames IMAGE                                     prints BEGIN BYTES EH_FRAME of each method of an image
//                                                              for arm64, as a jitdump has it
//   r2r_check [--references DIR]... names IMAGE                prints BEGIN END PART NAME for each runtime function
//
// IMAGE may be a single-file host: then all its images are checked. Exit status 1: something is missing or wrong.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "checked_image.h"
#include "frames.h"

namespace clrsampler {
namespace {

struct Loaded {
  std::unique_ptr<R2rImage> image;
  double index_ms = 0;
};

absl::StatusOr<Loaded> Load(std::span<const std::byte> bytes, absl::string_view name) {
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<PeImage> pe = PeImage::Parse(bytes);
  RETURN_IF_ERROR(pe.status());
  absl::StatusOr<std::unique_ptr<R2rImage>> image = R2rImage::Open(*std::move(pe), name);
  RETURN_IF_ERROR(image.status());
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  return Loaded{*std::move(image), spent.count()};
}

using ImageCheck = std::function<int(absl::string_view, Loaded&, AssemblyOpener&)>;

// Calls `check` for each R2R image in the file. Number of problems.
int ForEachImage(const std::string& path, const std::vector<std::string>& references, const ImageCheck& check) {
  const absl::StatusOr<std::shared_ptr<MappedFile>> file = MapWholeFile(path);
  if (!file.ok()) {
    std::printf("%s\n", file.status().ToString().c_str());
    return 1;
  }
  std::vector<std::string> folders = references;
  folders.emplace(folders.begin(), FolderOf(path));
  FolderOpener opener(folders);
  auto one = [&](std::span<const std::byte> bytes, absl::string_view name) {
    absl::StatusOr<Loaded> loaded = Load(bytes, StemOf(name));
    if (absl::IsFailedPrecondition(loaded.status())) return 0;  // no code in it
    if (!loaded.ok()) {
      std::printf("%s: %s\n", std::string(name).c_str(), loaded.status().ToString().c_str());
      return 1;
    }
    return check(name, *loaded, opener);
  };
  if (LooksLikePe((*file)->bytes())) return one((*file)->bytes(), path);
  const absl::StatusOr<BundleManifest> manifest = BundleManifest::Find((*file)->bytes());
  if (!manifest.ok()) {
    std::printf("%s: %s\n", path.c_str(), manifest.status().ToString().c_str());
    return 1;
  }
  opener.UseBundle(*file, &*manifest);
  int problems = 0;
  for (const BundleEntry& entry : manifest->entries()) {
    if (entry.type != 1 || entry.compressed_bytes != 0) continue;
    problems += one((*file)->bytes().subspan(entry.offset, entry.bytes), entry.path);
  }
  return problems;
}

int Coverage(absl::string_view name, Loaded& loaded, AssemblyOpener& opener) {
  R2rImage& image = *loaded.image;
  uint32_t parts[4] = {}, unowned = 0, failed = 0, by_token = 0;
  const auto start = std::chrono::steady_clock::now();
  for (uint32_t i = 0; i < image.function_count(); ++i) {
    const std::optional<R2rFunction> function = image.Function(i);
    const std::optional<R2rFunction> found = image.Find(function->begin);
    if (!found || found->index != i || function->method == R2rFunction::kNoOwner) {
      ++unowned;
      continue;
    }
    ++parts[static_cast<int>(function->part)];
    if (function->part != R2rPart::kBody) continue;
    const absl::StatusOr<R2rMethodName> method = image.Name(function->method, opener);
    if (!method.ok()) {
      if (++failed <= 3) std::printf("  %08X %s\n", function->begin, method.status().ToString().c_str());
    } else if (method->method_by_token || method->types_by_token) {
      ++by_token;
    }
  }
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  const R2rHeader& header = *image.pe().r2r();
  std::printf(
      "%s R2R %u.%u functions %u bodies %u funclets %u cold %u unowned %u failed %u by-token %u "
      "methods %u instances %u index-ms %.2f names-ms %.1f heap-bytes %zu missing %zu\n",
      StemOf(name).c_str(), header.major, header.minor, image.function_count(), parts[0], parts[1], parts[2], unowned,
      failed, by_token, image.method_count(), image.instance_count(), loaded.index_ms, spent.count(),
      image.heap_bytes(), image.missing_assemblies().size());
  return static_cast<int>(unowned + failed + by_token);
}

int IlMaps(absl::string_view name, Loaded& loaded, AssemblyOpener&) {
  const R2rImage& image = *loaded.image;
  uint32_t whole = 0, none = 0, damaged = 0, entries = 0, largest = 0, between = 0;
  for (uint32_t i = 0; i < image.function_count(); ++i) {
    if (image.Function(i)->part != R2rPart::kBody) continue;
    const absl::StatusOr<IlMap> map = image.IlMapOf(i);
    if (absl::IsNotFound(map.status())) {
      ++none;
    } else if (!map.ok()) {
      if (++damaged <= 3) std::printf("  function %u %s\n", i, map.status().ToString().c_str());
    } else {
      ++whole;
      const auto count = static_cast<uint32_t>(map->entries().size());
      entries += count;
      largest = std::max(largest, count);
      for (const IlMapEntry& entry : map->entries()) {
        between += image.pe().machine() == PeMachine::kArm64 && entry.native_offset % 4 != 0;
      }
    }
  }
  std::printf("%s R2R %u.%u il-maps %u none %u damaged %u entries %u largest %u between-instructions %u\n",
              StemOf(name).c_str(), image.pe().r2r()->major, image.pe().r2r()->minor, whole, none, damaged, entries,
              largest, between);
  return static_cast<int>(damaged + between);
}

int PrintIlMaps(absl::string_view, Loaded& loaded, AssemblyOpener&) {
  for (uint32_t i = 0; i < loaded.image->function_count(); ++i) {
    const std::optional<R2rFunction> function = loaded.image->Function(i);
    if (function->part != R2rPart::kBody) continue;
    const absl::StatusOr<IlMap> map = loaded.image->IlMapOf(i);
    if (!map.ok()) continue;
    std::string text;
    for (const IlMapEntry& entry : map->entries()) {
      absl::StrAppend(&text, " ", entry.il_offset, ":", uint32_t{entry.native_offset});
    }
    std::printf("%x%s\n", function->begin, text.c_str());
  }
  return 0;
}

int PrintFramesOf(absl::string_view, Loaded& loaded, AssemblyOpener&) { return PrintFrames(*loaded.image); }

int PrintNames(absl::string_view, Loaded& loaded, AssemblyOpener& opener) {
  constexpr const char* kParts[] = {"hot", "funclet", "cold", "resumption"};
  for (uint32_t i = 0; i < loaded.image->function_count(); ++i) {
    const std::optional<R2rFunction> function = loaded.image->Function(i);
    const absl::StatusOr<R2rMethodName> method =
        loaded.image->Name(function->method, opener, MethodVariables::kReplaced);
    std::printf("%08X %08X %s %s\n", function->begin, function->end, kParts[static_cast<int>(function->part)],
                method.ok() ? R2rMapText(method->name).c_str() : method.status().ToString().c_str());
  }
  return 0;
}

struct MapRow {
  uint32_t rva;
  uint32_t bytes;
  std::string text;
};

// Read here on its own, so that the check does not depend on the parser it may have to judge.
std::vector<MapRow> ReadMap(absl::string_view text) {
  std::vector<MapRow> rows;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    absl::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    MapRow row;
    const char* last = line.data() + line.size();
    const auto rva = std::from_chars(line.data(), last, row.rva, 16);
    if (rva.ptr == last) continue;
    const auto bytes = std::from_chars(rva.ptr + 1, last, row.bytes, 16);
    if (bytes.ptr == last || row.rva >= 0xFFFFFF00) continue;
    row.text.assign(bytes.ptr + 1, last);
    rows.push_back(std::move(row));
  }
  return rows;
}

int CompareWithMap(const std::vector<MapRow>& rows, absl::string_view name, Loaded& loaded, AssemblyOpener& opener) {
  R2rImage& image = *loaded.image;
  uint32_t equal = 0, different = 0, no_function = 0, wrong_owner = 0;
  std::vector<uint32_t> starts;
  for (const MapRow& row : rows) {
    starts.push_back(row.rva);
    const std::optional<R2rFunction> function = image.Find(row.rva);
    if (!function || function->begin != row.rva || function->part != R2rPart::kBody) {
      if (++no_function <= 3) std::printf("  %08X no method begins here: %s\n", row.rva, row.text.c_str());
      continue;
    }
    const absl::StatusOr<R2rMethodName> method = image.Name(function->method, opener, MethodVariables::kReplaced);
    const std::string text = method.ok() ? R2rMapText(method->name) : method.status().ToString();
    if (text == row.text) {
      ++equal;
    } else if (++different <= 3) {
      std::printf("  %08X\n    map  %s\n    ours %s\n", row.rva, row.text.c_str(), text.c_str());
    }
  }
  // Funclets stand inside the row of their method. Cold parts have no row.
  std::sort(starts.begin(), starts.end());
  for (uint32_t i = 0; i < image.function_count(); ++i) {
    const std::optional<R2rFunction> function = image.Function(i);
    if (function->part == R2rPart::kCold) continue;
    const auto next = std::upper_bound(starts.begin(), starts.end(), function->begin);
    const std::optional<R2rFunction> method = image.Function(function->method);
    if (next == starts.begin() || !method || method->begin != *std::prev(next)) ++wrong_owner;
  }
  std::printf("%s R2R %u.%u rows %zu equal %u different %u no-function %u wrong-owner %u functions %u\n",
              StemOf(name).c_str(), image.pe().r2r()->major, image.pe().r2r()->minor, rows.size(), equal, different,
              no_function, wrong_owner, image.function_count());
  return static_cast<int>(different + no_function + wrong_owner) + (rows.empty() ? 1 : 0);
}

int Usage() {
  std::fputs(
      "usage: r2r_check [--references DIR]... coverage IMAGE... | il-maps IMAGE... | il-map-entries IMAGE | frames "
      "IMAGE | "
      "map IMAGE R2RMAP | jitdump DUMP MAPS | live DUMP PID | names IMAGE\n",
      stderr);
  return 2;
}

int Main(std::vector<std::string> arguments) {
  std::vector<std::string> references;
  while (arguments.size() > 2 && arguments[0] == "--references") {
    references.push_back(arguments[1]);
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  if (arguments.size() < 2) return Usage();
  const std::string mode = arguments[0];
  arguments.erase(arguments.begin());
  int problems = 0;
  const std::map<std::string, ImageCheck> checks = {{"coverage", Coverage},
                                                    {"names", PrintNames},
                                                    {"il-maps", IlMaps},
                                                    {"il-map-entries", PrintIlMaps},
                                                    {"frames", PrintFramesOf}};
  if (const auto check = checks.find(mode); check != checks.end()) {
    for (const std::string& path : arguments) problems += ForEachImage(path, references, check->second);
  } else if (mode == "map" && arguments.size() == 2) {
    const absl::StatusOr<std::shared_ptr<MappedFile>> map = MapWholeFile(arguments[1]);
    if (!map.ok()) {
      std::printf("%s\n", map.status().ToString().c_str());
      return 1;
    }
    const std::vector<MapRow> rows = ReadMap(AsText((*map)->bytes()));
    uint32_t images = 0;
    problems =
        ForEachImage(arguments[0], references, [&](absl::string_view name, Loaded& loaded, AssemblyOpener& opener) {
          ++images;
          return CompareWithMap(rows, name, loaded, opener);
        });
    if (images != 1) return 1;
  } else if (mode == "jitdump" && arguments.size() == 2) {
    problems = CheckLiveRun(arguments[0], arguments[1], references);
  } else if (mode == "live" && arguments.size() == 2) {
    problems = CheckLiveProcess(arguments[0], static_cast<uint32_t>(std::strtoul(arguments[1].c_str(), nullptr, 10)));
  } else {
    return Usage();
  }
  return problems == 0 ? 0 : 1;
}

}  // namespace
}  // namespace clrsampler

int main(int argc, char** argv) { return clrsampler::Main(std::vector<std::string>(argv + 1, argv + argc)); }
