#include "clr/lines/assembly_pdbs.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "os/digest.h"
#include "os/path_text.h"
#include "process/mounts_identity.h"
#include "status/status.h"

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

std::shared_ptr<AssemblySlot> AssemblyPdbs::Find(const Process& process, const PeImage& image,
                                                 const std::shared_ptr<const void>& keep_alive, absl::string_view path,
                                                 absl::string_view name) {
  main_loop_.Check();
  const std::vector<PdbReference> references = PdbReferences(image);
  if (references.empty()) return nullptr;
  Key key{MountsIdentity(process), std::string(path), std::string(name), references.front().id.bytes};
  std::shared_ptr<AssemblySlot> slot;
  if (const auto known = known_.find(key); known != known_.end()) slot = known->second.lock();
  if (slot == nullptr) {
    if (known_.size() >= kMaxAssemblies) {
      known_.clear();
      used_by_.Clear();
    }
    if (std::shared_ptr<AssemblyLines> lines = Search(process, image, keep_alive, path, name, references)) {
      ++counters_.found;
      slot = std::make_shared<AssemblySlot>(std::move(lines));
    } else {
      slot = Ask(image, name, references.front());
    }
    known_[std::move(key)] = slot;
  }
  used_by_.Of(process).insert(slot);
  return slot->lines() != nullptr || slot->waiting() ? slot : nullptr;
}

void AssemblyPdbs::Release(Used& used) {
  main_loop_.Check();
  used.clear();
  absl::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
}

std::shared_ptr<AssemblySlot> AssemblyPdbs::Ask(const PeImage& image, absl::string_view name,
                                                const PdbReference& reference) {
  std::optional<SymbolFileKey> key;
  if (symbol_files_ != nullptr) key = PortablePdbKey(reference, PdbChecksums(image));
  if (!key) {
    NoteWithout(name);
    return std::make_shared<AssemblySlot>(nullptr);
  }
  return std::make_shared<AssemblySlot>(
      *symbol_files_, *std::move(key),
      [this, name = std::string(name), id = reference.id](const std::shared_ptr<const ImageFile>& file) {
        return OpenFetched(file, name, id);
      });
}

std::shared_ptr<AssemblyLines> AssemblyPdbs::OpenFetched(const std::shared_ptr<const ImageFile>& file,
                                                         const std::string& name, const PdbId& id) {
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
  main_loop_.Check();
  AssemblyLines* const lines = assembly.lines();
  if (lines == nullptr) return;
  lines->NoteSources(method_rid, source_files_,
                     [&](const PdbDocument& document) { return ReadText(process, document); });
}

// Paths of other machines and other systems lead nowhere here.
std::string AssemblyPdbs::ReadText(const Process& process, const PdbDocument& document) {
  if (!absl::StartsWith(document.name, "/")) return "";
  const absl::StatusOr<std::shared_ptr<const ImageFile>> file = images_.GetOnce(process, document.name);
  if (!file.ok() || (*file)->bytes().size() > kMaxTextBytes) return "";
  // This is a copy, so that the bytes that are hashed are those that are kept.
  std::string text(AsText((*file)->bytes()));
  return !(*file)->content.damaged() && IsTextOf(document, text) ? text : "";
}

void AssemblyPdbs::NoteWithout(absl::string_view name) {
  if (named_without_.size() >= kMaxNamesCounted) named_without_.clear();
  if (!named_without_.insert(absl::HashOf(name)).second) return;
  ++counters_.without;
  if (without_.size() < kMaxNames) without_.emplace_back(name);
}

absl::StatusOr<std::shared_ptr<AssemblyLines>> AssemblyPdbs::OpenEmbedded(std::span<const std::byte> entry,
                                                                          std::shared_ptr<const void> keep_alive,
                                                                          const PdbId& id) {
  if (keep_alive == nullptr) {
    ASSIGN_OR_RETURN(std::shared_ptr<const std::vector<std::byte>> copy, memory_.Keep(entry));
    entry = *copy;
    keep_alive = std::move(copy);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<PdbBytes> pdb, PdbBytes::Embedded(memory_, entry, std::move(keep_alive), id));
  return std::make_shared<AssemblyLines>(memory_, std::move(pdb));
}

std::shared_ptr<AssemblyLines> AssemblyPdbs::Search(const Process& process, const PeImage& image,
                                                    const std::shared_ptr<const void>& keep_alive,
                                                    absl::string_view path, absl::string_view name,
                                                    const std::vector<PdbReference>& references) {
  if (const std::optional<std::span<const std::byte>> entry = EmbeddedPdb(image)) {
    absl::StatusOr<std::shared_ptr<AssemblyLines>> lines = OpenEmbedded(*entry, keep_alive, references.front().id);
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
  absl::StatusOr<std::unique_ptr<PdbBytes>> pdb =
      file.ok() ? PdbBytes::OfFile(memory_, *std::move(file), id) : file.status();
  if (pdb.ok()) return std::make_shared<AssemblyLines>(memory_, *std::move(pdb));
  Refuse(path, pdb.status());
  return nullptr;
}

void AssemblyPdbs::Refuse(absl::string_view path, const absl::Status& status) {
  ++counters_.refused;
  notices_.Add("pdb_refused", path, absl::StrCat(path, " gives no lines: ", status.message()),
               absl::IsFailedPrecondition(status) ? "--pdb-path names a folder that has the PDB of this build" : "");
}

AssemblyPdbsCounters AssemblyPdbs::counters() const {
  AssemblyPdbsCounters counters = counters_;
  for (const auto& [key, known] : known_) {
    const std::shared_ptr<AssemblySlot> slot = known.lock();
    counters.awaited += slot != nullptr && slot->waiting() ? 1 : 0;
  }
  return counters;
}

std::map<std::string, uint64_t> AssemblyPdbsCounters::ByName() const {
  return {{"found", found},     {"embedded", embedded}, {"fetched", fetched},
          {"awaited", awaited}, {"without", without},   {"refused", refused}};
}

}  // namespace clrsampler
