#include "clr/memory/precompiled_methods.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

namespace clrsampler {
namespace {

constexpr uint32_t kMaxBuckets = 1 << 20;
constexpr uint32_t kMaxFunctions = 2 << 20;  // of one process: 24 MB; a composite framework has 215,000
constexpr int kMapReads = 200'000;           // as long as the target says
constexpr size_t kMapBytes = size_t{1} << 30;
constexpr size_t kMaxR2rModules = 1 << 14;  // of one process

// The size of a bucket of the runtime's hash map: four keys and four values. Values are shifted right by one, and their
// highest bit marks a collision.
constexpr uint64_t kBucketBytes = 64;
constexpr uint32_t kSlots = 4;

}  // namespace

// The tables of an image as they lie in the target's memory. They do not change once the image is loaded.
struct PrecompiledMethods::Image {
  uint64_t base = 0;  // RVA 0
  struct Row {
    uint32_t begin = 0, second = 0;  // its end, or its unwind data where that has the length
  };
  std::vector<Row> functions;
  absl::flat_hash_map<uint64_t, uint64_t> methods;  // entry point -> MethodDesc; as of the last look
  size_t most_methods = 0;                          // of any look
  uint32_t misses = 0;     // questions without an answer since the last look at the runtime's map
  uint32_t next_look = 1;  // after so many of them

  bool HasFunctionAt(uint64_t address) const {
    const auto row = std::ranges::lower_bound(functions, address - base, {}, &Row::begin);
    return row != functions.end() && row->begin == address - base;
  }
};

PrecompiledMethods::PrecompiledMethods(const RuntimeLayout& layout, MemoryReader& memory)
    : layout_(layout), memory_(memory) {}
PrecompiledMethods::~PrecompiledMethods() = default;

std::optional<PrecompiledMethods::Function> PrecompiledMethods::Find(MemoryProbe& probe, const CodeSection& section,
                                                                     uint64_t address) {
  main_loop_.Check();
  if (images_.size() >= kMaxR2rModules) {
    images_.clear();
    functions_ = 0;
  }
  std::unique_ptr<Image>& image = images_[section.r2r_module];
  if (image == nullptr) image = ReadImage(probe, section);
  if (image == nullptr || !probe.ok()) return std::nullopt;
  const uint64_t rva = address - image->base;
  const auto next = std::upper_bound(image->functions.begin(), image->functions.end(), rva,
                                     [](uint64_t value, const Image::Row& row) { return value < row.begin; });
  if (next == image->functions.begin()) return std::nullopt;
  const Image::Row& row = *std::prev(next);
  const uint64_t start = image->base + row.begin;
  const uint64_t end = layout_.runtime_function.has_end
                           ? image->base + row.second
                           : start + CodeRanges::LengthByUnwindData(probe, image->base, row.second);
  if (!probe.ok() || address >= end) return std::nullopt;
  const std::optional<uint64_t> method_desc = MethodAt(probe, *image, section, start);
  if (!method_desc) return std::nullopt;
  return Function{{start, end}, *method_desc};
}

std::unique_ptr<PrecompiledMethods::Image> PrecompiledMethods::ReadImage(MemoryProbe& probe,
                                                                         const CodeSection& section) {
  const uint64_t info = probe.Pointer(section.r2r_module + layout_.module.r2r_info);
  const auto fields = probe.Block<RuntimeLayout::R2rInfo::kBytes>(info);
  const uint64_t table = FieldOf<uint64_t>(fields, layout_.r2r_info.functions);
  const uint32_t count = FieldOf<uint32_t>(fields, layout_.r2r_info.function_count);
  if (!probe.ok() || !probe.Require(count <= kMaxFunctions - functions_, "too many functions")) return nullptr;
  auto image = std::make_unique<Image>();
  image->base = section.range.begin;
  functions_ += count;
  constexpr uint32_t kStep = 16384;
  const uint32_t bytes = layout_.runtime_function.bytes;
  std::vector<std::byte> rows;
  while (image->functions.size() < count) {
    const size_t done = image->functions.size(), some = std::min<size_t>(count - done, kStep);
    rows.resize(some * bytes);
    if (!memory_.Read(table + bytes * done, rows)) {
      // Not tried again: a table that can't be read to its end would cost megabytes with each sample.
      image->functions.clear();
      probe.Fail(ProbeFailure::kUnreadable, "the table of functions is not mapped");
      return image;
    }
    for (size_t i = 0; i < some; ++i) {
      Image::Row row;
      std::memcpy(&row, rows.data() + i * bytes, sizeof row);
      image->functions.push_back(row);
    }
  }
  return image;
}

std::optional<uint64_t> PrecompiledMethods::MethodAt(MemoryProbe& probe, Image& image, const CodeSection& section,
                                                     uint64_t start) const {
  auto method = image.methods.find(start);
  if (method == image.methods.end()) {
    // The method may have been prepared since the last look. The whole map is copied for it, so this is done less and
    // less often while it brings nothing.
    if (++image.misses < image.next_look) return std::nullopt;
    // A hostile map tells other keys each time, so only those count that are functions.
    image.misses = 0;
    absl::flat_hash_map<uint64_t, uint64_t> methods;
    ForEachPrepared(section, probe, [&](const Prepared& prepared) {
      if (image.HasFunctionAt(prepared.entry_point)) methods[prepared.entry_point] = prepared.method_desc;
    });
    if (probe.ok()) image.methods = std::move(methods);
    constexpr uint32_t kMostMisses = 4096;
    const bool more = image.methods.size() > image.most_methods;
    image.most_methods = std::max(image.most_methods, image.methods.size());
    image.next_look = more ? 1 : std::min(2 * image.next_look, kMostMisses);
    method = image.methods.find(start);
  }
  if (method == image.methods.end()) return std::nullopt;
  return method->second;
}

std::vector<PrecompiledMethods::Prepared> PrecompiledMethods::PreparedIn(const CodeSection& section,
                                                                         MemoryProbe& failed) const {
  std::vector<Prepared> prepared;
  ForEachPrepared(section, failed, [&](const Prepared& method) {
    failed.Require(section.range.contains(method.entry_point), "a prepared method lies outside its image");
    failed.Require(prepared.size() < kMaxFunctions, "too many prepared methods");
    if (failed.ok()) prepared.push_back(method);
  });
  if (!failed.ok()) prepared.clear();
  return prepared;
}

void PrecompiledMethods::ForEachPrepared(const CodeSection& section, MemoryProbe& failed,
                                         absl::FunctionRef<void(Prepared)> visit) const {
  MemoryProbe probe(memory_, kMapReads, kMapBytes);
  const uint64_t info = probe.Pointer(section.r2r_module + layout_.module.r2r_info);
  const auto fields = probe.Block<RuntimeLayout::R2rInfo::kBytes>(info);
  probe.Require(FieldOf<uint64_t>(fields, layout_.r2r_info.module) == section.r2r_module,
                "a module's precompiled code is another module's");
  const uint64_t composite = FieldOf<uint64_t>(fields, layout_.r2r_info.composite);
  const uint64_t map = (composite != 0 ? composite : info) + layout_.r2r_info.entry_points;
  const uint64_t buckets = probe.Pointer(map + layout_.hash_map_buckets);
  const uint32_t count = probe.Value<uint32_t>(buckets);
  // The runtime makes the map with some buckets.
  probe.Require(count > 0 && count <= kMaxBuckets, "a hash map of an impossible size");
  std::array<uint64_t, 8 * 64> some;
  for (uint32_t done = 0; done < count && probe.ok() && failed.ok();) {
    const uint32_t now = std::min<uint32_t>(64, count - done);
    // Bucket 0 holds the count.
    probe.Read(buckets + kBucketBytes * (done + 1), std::as_writable_bytes(std::span(some)).first(now * kBucketBytes));
    for (uint32_t i = 0; i < now && probe.ok(); ++i) {
      for (uint32_t slot = 0; slot < kSlots; ++slot) {
        const uint64_t key = some[8 * i + slot];
        if (key > 1) visit({key, (some[8 * i + kSlots + slot] & 0x7FFFFFFFFFFFFFFF) << 1});
      }
    }
    done += now;
  }
  if (!probe.ok()) failed.Fail(probe.failure(), probe.detail());
}

}  // namespace clrsampler
