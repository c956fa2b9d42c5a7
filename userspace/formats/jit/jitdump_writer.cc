#include "formats/jit/jitdump_writer.h"

#include <cstring>

#include "formats/byte_reader.h"

namespace clrsampler {

void JitdumpWriter::U32(uint32_t value) {
  if (swap_) value = __builtin_bswap32(value);
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void JitdumpWriter::U64(uint64_t value) {
  if (swap_) value = __builtin_bswap64(value);
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void JitdumpWriter::Text(absl::string_view text) {
  bytes_.append(text.data(), text.size());
  bytes_.push_back('\0');
}

void JitdumpWriter::Raw(std::span<const std::byte> raw) {
  bytes_.append(reinterpret_cast<const char*>(raw.data()), raw.size());
}

void JitdumpWriter::Prefix(uint32_t id, uint64_t payload_bytes, uint64_t timestamp) {
  U32(id);
  U32(static_cast<uint32_t>(16 + payload_bytes));
  U64(timestamp);
}

void JitdumpWriter::Header(const JitdumpHeader& header, absl::string_view extension) {
  pid_ = header.pid;
  U32(0x4A695444);
  U32(header.version);
  U32(static_cast<uint32_t>(40 + extension.size()));
  U32(header.elf_machine);
  U32(0);
  U32(header.pid);
  U64(header.timestamp);
  U64(header.arch_timestamps ? 1 : 0);
  Raw(AsBytes(extension));
}

void JitdumpWriter::Load(const JitdumpLoad& load, std::span<const std::byte> code) {
  Prefix(0, 40 + load.name.size() + 1 + code.size(), load.timestamp);
  U32(load.pid);
  U32(load.tid);
  U64(load.vma);
  U64(load.code_address);
  U64(load.code_size);
  U64(load.code_index);
  Text(load.name);
  Raw(code);
}

void JitdumpWriter::Load(absl::string_view name, uint64_t timestamp, uint64_t address,
                         std::span<const std::byte> code) {
  JitdumpLoad load;
  load.timestamp = timestamp;
  load.pid = load.tid = pid_;
  load.vma = load.code_address = address;
  load.code_size = code.size();
  load.code_index = next_index_++;
  load.name = name;
  Load(load, code);
}

void JitdumpWriter::Move(const JitdumpMove& move) {
  Prefix(1, 48, move.timestamp);
  U32(move.pid);
  U32(move.tid);
  U64(move.vma);
  U64(move.old_code_address);
  U64(move.new_code_address);
  U64(move.code_size);
  U64(move.code_index);
}

void JitdumpWriter::DebugInfo(const JitdumpDebugInfo& info) {
  uint64_t payload = 16;
  for (const JitdumpDebugEntry& entry : info.entries) payload += 16 + entry.file.size() + 1;
  Prefix(2, payload, info.timestamp);
  U64(info.code_address);
  U64(info.announced_entries);
  for (const JitdumpDebugEntry& entry : info.entries) {
    U64(entry.address);
    U32(entry.line);
    U32(entry.discriminator);
    Text(entry.file);
  }
}

void JitdumpWriter::Unwinding(uint64_t timestamp, uint64_t eh_frame_header_size, uint64_t mapped_size,
                              std::span<const std::byte> data) {
  Prefix(4, 24 + data.size(), timestamp);
  U64(data.size());
  U64(eh_frame_header_size);
  U64(mapped_size);
  Raw(data);
}

void JitdumpWriter::Close(uint64_t timestamp) { Prefix(3, 0, timestamp); }

void JitdumpWriter::Unknown(uint32_t id, uint64_t timestamp, std::span<const std::byte> payload) {
  Prefix(id, payload.size(), timestamp);
  Raw(payload);
}

}  // namespace clrsampler
