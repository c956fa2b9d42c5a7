#include "pipeline/thread_contexts.h"

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kVariable = "otel_thread_ctx_v1";
constexpr uint64_t kLookNs = 1'000'000'000;
constexpr uint32_t kMaxTries = 10;

ThreadVectorKind VectorOf(LibcFlavour libc) {
  if (libc == LibcFlavour::kGlibc) return ThreadVectorKind::kGlibc;
  return libc == LibcFlavour::kMusl ? ThreadVectorKind::kMusl : ThreadVectorKind::kUnknown;
}

// The number that is added to addresses in the image; nullopt: the mapping shows none of its segments.
std::optional<uint64_t> BiasOf(const ElfImage& image, const Mapping& mapping) {
  const std::optional<VirtualAddress> address = image.ToAddress({mapping.file_offset});
  if (address) return mapping.start - address->value;
  // A segment begins inside its first page.
  for (const LoadSegment& segment : image.segments()) {
    if (segment.executable && segment.offset.value >= mapping.file_offset &&
        segment.offset.value - mapping.file_offset < mapping.end - mapping.start) {
      return mapping.start + (segment.offset.value - mapping.file_offset) - segment.address.value;
    }
  }
  return std::nullopt;
}

wire_thread_variable WireOf(const ThreadPlace& place) {
  return {.offset = static_cast<uint64_t>(place.offset),
          .vector = place.vector,
          .count = place.count,
          .slot = place.slot,
          .module = place.module};
}

}  // namespace

void ThreadContexts::Observe(const Process& process, MonotonicTime time) {
  main_loop_.Check();
  Known& known = known_.Of(process);
  if (known.exec_count != process.exec_count) {
    TakeBack(process.key, known);
    known = Known{.exec_count = process.exec_count};
  }
  if (known.asked == process.mappings.generation() || time < known.next ||
      process.exec_announced != MonotonicTime::Max()) {
    return;
  }
  known.next = {time.ns + kLookNs};
  known.asked = process.mappings.generation();
  if (known.served) {
    const Mapping* there = process.mappings.Find(known.served->start);
    if (there == nullptr || !ShowSameFile(*there, *known.served)) TakeBack(process.key, known);
  }
  const std::optional<DotNetRuntime> runtime = parts_.runtimes.Find(process);
  if (runtime) Look(process, *runtime, time, known);
}

void ThreadContexts::Look(const Process& process, const DotNetRuntime& runtime, MonotonicTime time, Known& known) {
  const uint64_t since = known.generation;
  known.generation = process.mappings.generation();
  std::vector<Mapping> arrived;
  process.mappings.ForEachSince(since, [&](const Mapping& mapping) {
    if (mapping.kind == MappingKind::kFile) arrived.push_back(mapping);
  });
  for (const Mapping& mapping : arrived) {
    if (known.served && ShowSameFile(mapping, *known.served)) continue;
    bool exports = false;
    absl::StatusOr<ThreadPlace> place = PlaceIn(process, runtime, mapping, exports);
    if (!exports) continue;
    if (absl::IsUnavailable(place.status()) && ++known.tries <= kMaxTries) {
      known.generation = since;  // it is looked at again
      known.asked = 0;
      return;
    }
    absl::Status told = place.status();
    if (place.ok() && known.served) {
      told = absl::AlreadyExistsError(absl::StrCat("that of ", known.served->path, " is read"));
    } else if (place.ok()) {
      told = parts_.tell(process.key.tgid, WireOf(*place));
    }
    if (told.ok()) {
      known.served = mapping;
      known.since = time;
      told_[process.key.tgid] = process.key;
      any_ = true;
      continue;
    }
    parts_.notices.Add("thread_context", absl::StrCat(process.key.tgid),
                       absl::StrCat("the trace ids that ", mapping.path, " publishes in process ", process.key.tgid,
                                    " (", process.comm, ") are not read: ", told.message()),
                       "docs/labels.md says which libraries are served");
  }
}

absl::StatusOr<ThreadPlace> ThreadContexts::PlaceIn(const Process& process, const DotNetRuntime& runtime,
                                                    const Mapping& mapping, bool& exports) {
  const auto file = parts_.images.Get(process, mapping);
  if (!file.ok() || !ElfImage::HasMagic((*file)->bytes())) return absl::NotFoundError("no image");
  const absl::StatusOr<ElfImage> image = ElfImage::Parse((*file)->bytes());
  if (!image.ok()) return image.status();
  const std::optional<ThreadVariable> variable = FindThreadVariable(*image, kVariable);
  if (!variable || (*file)->content.damaged()) return absl::NotFoundError("no such variable");
  exports = true;
  if (image->machine() != runtime.machine) return absl::UnimplementedError("it is of another machine");
  const std::optional<uint64_t> bias = BiasOf(*image, mapping);
  if (!bias) return absl::DataLossError("the image is not laid out as it says");
  const auto memory = parts_.open(process.key.tgid);
  if (!memory.ok()) return memory.status();
  return PlaceOf(*variable, image->machine(), *bias, mapping.path == process.executable, VectorOf(runtime.libc),
                 [&](uint64_t address) { return (*memory)->Value<uint64_t>(address); });
}

TraceLink ThreadContexts::LinkOf(const Process& process, const RawStack& raw) const {
  TraceLink link;
  if (raw.trace() == nullptr) return link;
  const Known* const known = known_.Find(process.key);
  if (known == nullptr || known->exec_count != process.exec_count || !known->served) return link;
  // Samples from before may be those of a program that the process ran then.
  if (MonotonicTime{raw.sample().header.time_ns} < known->since) return link;
  std::memcpy(link.trace_id.data(), raw.trace()->trace_id, link.trace_id.size());
  std::memcpy(link.span_id.data(), raw.trace()->span_id, link.span_id.size());
  return link;
}

void ThreadContexts::TakeBack(ProcessKey key, Known& known) {
  const auto told = told_.find(key.tgid);
  if (known.served && told != told_.end() && told->second == key) {
    parts_.take_back(key.tgid);
    told_.erase(told);
  }
  known.served.reset();
}

}  // namespace clrsampler
