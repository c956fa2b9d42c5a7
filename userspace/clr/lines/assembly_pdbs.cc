#include "clr/lines/assembly_pdbs.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/pdb/embedded_pdb.h"
#include "os/digest.h"
#include "os/path_text.h"
#include "process/mounts_identity.h"

namespace clrsampler {
namespace {

// PDBs of Windows builds name their place with backslashes.
absl::string_view LastPart(absl::string_view path) {
  const size_t slash = path.find_last_of("/\\");
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

void AddOnce(std::vector<std::string>& paths, std::string path) {
  if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(std::move(path));
}

constexpr size_t kMaxTextBytes = 4 << 20;

bool IsTextOf(const PdbDocument& document, absl::string_view text) {
  const auto is_hash = [&](const auto& digest) {
    return std::ranges::equal(std::as_bytes(std::span(digest)), document.hash);
  };
  switch (document.hash_algorithm) {
    case PdbHashAlgorithm::kSha256:
      return is_hash(Sha256(text));
    case PdbHashAlgorithm::kSha1:
      return is_hash(Sha1(text));
    case PdbHashAlgorithm::kNone:
      break;
  }
  return false;
}

}  // namespace

std::shared_ptr<AssemblySlot> AssemblyPdbs::Find(const Process& process, const PeImage& image, absl::string_view path,
                                                 absl::string_view name) {
  const std::vector<PdbReference> references = PdbReferences(image);
  if (references.empty()) return nullptr;
  Key key{MountsIdentity(process), std::string(path), std::string(name), references.front().id.bytes};
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  if (known_.size() >= kMaxAssemblies) known_.clear();
  std::shared_ptr<AssemblySlot> slot;
  if (std::shared_ptr<AssemblyLines> lines = Search(process, image, path, name, references)) {
    ++counters_.found;
    slot = std::make_shared<AssemblySlot>(std::move(lines));
  } else {
    slot = Ask(image, name, references.front());
  }
  return known_[std::move(key)] = std::move(slot);
}

std::shared_ptr<AssemblySlot> AssemblyPdbs::Ask(const PeImage& image, absl::string_view name,
                                                const PdbReference& reference) {
  std::optional<SymbolFileKey> key;
  if (symbol_files_ != nullptr) key = PortablePdbKey(reference, PdbChecksums(image));
  if (!key) {
    NoteWithout(name);
    return nullptr;
  }
  auto slot = std::make_shared<AssemblySlot>(
      *symbol_files_, *std::move(key),
      [this, name = std::string(name), id = reference.id](const std::shared_ptr<const ImageFile>& file) {
        return OpenFetched(file, name, id);
      });
  ++counters_.awaited;
  return slot->lines() != nullptr || slot->waiting() ? slot : nullptr;
}

std::shared_ptr<AssemblyLines> AssemblyPdbs::OpenFetched(const std::shared_ptr<const ImageFile>& file,
                                                         const std::string& name, const PdbId& id) {
  --counters_.awaited;
  std::shared_ptr<AssemblyLines> lines = file == nullptr ? nullptr : Open(file, file->path, id);
  if (lines == nullptr) {
    NoteWithout(name);
    return nullptr;
  }
  ++counters_.found;
  ++counters_.fetched;
  return lines;
}

void AssemblyPdbs::NoteSources(const Process& process, AssemblySlot& assembly, uint32_t method_rid) {
  AssemblyLines* const lines = assembly.lines();
  if (lines == nullptr) return;
  lines->NoteSources(method_rid, source_files_,
                     [&](const PdbDocument& document) { return ReadText(process, document); });
}

// Paths of other machines and other systems lead nowhere here.
std::string AssemblyPdbs::ReadText(const Process& process, const PdbDocument& document) {
  if (!absl::StartsWith(document.name, "/")) return "";
  const absl::StatusOr<std::shared_ptr<const ImageFile>> file = images_.GetByPath(process, document.name);
  if (!file.ok() || (*file)->bytes().size() > kMaxTextBytes) return "";
  // A copy, so that what is hashed is what is kept.
  std::string text(AsText((*file)->bytes()));
  return !(*file)->content.damaged() && IsTextOf(document, text) ? text : "";
}

void AssemblyPdbs::NoteWithout(absl::string_view name) {
  ++counters_.without;
  if (without_.size() < kMaxNames && std::ranges::find(without_, name) == without_.end()) without_.emplace_back(name);
}

std::shared_ptr<AssemblyLines> AssemblyPdbs::Search(const Process& process, const PeImage& image,
                                                    absl::string_view path, absl::string_view name,
                                                    const std::vector<PdbReference>& references) {
  if (const std::optional<std::span<const std::byte>> entry = EmbeddedPdb(image)) {
    absl::StatusOr<std::vector<std::byte>> bytes = InflateEmbeddedPdb(*entry);
    absl::StatusOr<std::shared_ptr<AssemblyLines>> lines =
        bytes.ok() ? AssemblyLines::OfBytes(*std::move(bytes), references.front().id) : bytes.status();
    if (lines.ok()) {
      ++counters_.embedded;
      return *std::move(lines);
    }
    Refuse(absl::StrCat("the PDB inside ", path), lines.status());
  }
  for (const PdbReference& reference : references) {
    const std::string file_name(LastPart(reference.path));
    std::vector<std::string> here;
    if (!path.empty()) {
      const std::string folder(FolderOf(path));
      if (!file_name.empty()) AddOnce(here, folder + file_name);
      AddOnce(here, absl::StrCat(folder, name, ".pdb"));
    }
    if (absl::StartsWith(reference.path, "/")) AddOnce(here, reference.path);
    for (const std::string& candidate : here) {
      if (auto lines = Open(images_.GetByPath(process, candidate), candidate, reference.id)) return lines;
    }
    for (const std::string& folder : folders_) {
      if (file_name.empty()) break;
      const std::string candidate = absl::StrCat(folder, "/", file_name);
      if (auto lines = Open(images_.GetOnHost(process, candidate), candidate, reference.id)) return lines;
    }
  }
  return nullptr;
}

std::shared_ptr<AssemblyLines> AssemblyPdbs::Open(absl::StatusOr<std::shared_ptr<const ImageFile>> file,
                                                  absl::string_view path, const PdbId& id) {
  if (absl::IsNotFound(file.status())) return nullptr;
  absl::StatusOr<std::shared_ptr<AssemblyLines>> lines =
      file.ok() ? AssemblyLines::OfFile(*std::move(file), id) : file.status();
  if (lines.ok()) return *std::move(lines);
  Refuse(path, lines.status());
  return nullptr;
}

void AssemblyPdbs::Refuse(absl::string_view path, const absl::Status& status) {
  ++counters_.refused;
  notices_.Add("pdb_refused", path, absl::StrCat(path, " gives no lines: ", status.message()),
               absl::IsFailedPrecondition(status) ? "--pdb-path names a folder that has the PDB of this build" : "");
}

std::map<std::string, uint64_t> AssemblyPdbsCounters::ByName() const {
  return {{"found", found},     {"embedded", embedded}, {"fetched", fetched},
          {"awaited", awaited}, {"without", without},   {"refused", refused}};
}

}  // namespace clrsampler
