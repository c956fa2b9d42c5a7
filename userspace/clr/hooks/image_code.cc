#include "clr/hooks/image_code.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "clr/hooks/code_scan_arm64.h"
#include "clr/hooks/code_scan_x64.h"
#include "status/status.h"

namespace clrsampler {

std::string AddressText(VirtualAddress address) { return absl::StrCat("0x", absl::Hex(address.value)); }

absl::StatusOr<ImageCode> ImageCode::Read(const ElfImage& image) {
  ASSIGN_OR_RETURN(ImageCode code, ReadForNames(image, nullptr));
  uint64_t code_bytes = 0;
  for (FunctionIndex i = 0; i < code.functions_.size(); ++i) {
    if (code.IsTooLarge(i)) {
      return absl::UnimplementedError(absl::StrCat("the function at ", AddressText(code.Start(i)), " has ",
                                                   code.Code(i).size(), " bytes, more than any of a runtime"));
    }
    code_bytes += code.Code(i).size();
  }
  if (code_bytes > kMaxCodeBytes) {
    return absl::UnimplementedError(absl::StrCat("there are ", code_bytes >> 20, " MB of code"));
  }
  return code;
}

absl::StatusOr<ImageCode> ImageCode::ReadForNames(const ElfImage& image, const ElfSymbolTable* symbols) {
  ASSIGN_OR_RETURN(FunctionTable functions, FunctionTable::Read(image, symbols));
  ASSIGN_OR_RETURN(RelativeRelocations relocations, RelativeRelocations::Read(image));
  return ImageCode(image, std::move(functions), std::move(relocations));
}

void ImageCode::Scan(FunctionIndex function, CodeReferenceSink found) const {
  if (image_.machine() == ElfMachine::kX64) {
    x64::ScanReferences(Code(function), Start(function), found);
  } else {
    arm64::ScanReferences(Code(function), Start(function), found);
  }
}

absl::Status ImageCode::IndexReferences(std::span<const VirtualAddress> watched) {
  const size_t count = functions_.size();
  users_.assign(watched.size(), {});
  std::vector<std::pair<FunctionIndex, FunctionIndex>> calls;  // callee, caller
  std::vector<FunctionIndex> callees;
  for (FunctionIndex caller = 0; caller < count; ++caller) {
    callees.clear();
    Scan(caller, [&](const CodeReference& reference) {
      if (reference.kind == CodeReference::Kind::kBranch) {
        const FunctionIndex callee = functions_.IndexAt(reference.target);
        if (callee != FunctionTable::kNone && callee != caller) callees.push_back(callee);
        return;
      }
      for (size_t i = 0; i < watched.size(); ++i) {
        std::vector<FunctionIndex>& users = users_[i];
        if (reference.target != watched[i] || users.size() == kMaxUsers) continue;
        if (users.empty() || users.back() != caller) users.push_back(caller);
      }
    });
    std::sort(callees.begin(), callees.end());
    callees.erase(std::unique(callees.begin(), callees.end()), callees.end());
    if (calls.size() + callees.size() > kMaxCalls) {
      return absl::UnimplementedError("there are more calls than any runtime has");
    }
    for (const FunctionIndex callee : callees) calls.emplace_back(callee, caller);
  }
  first_caller_.assign(count + 1, 0);
  for (const auto& [callee, caller] : calls) ++first_caller_[callee + 1];
  for (size_t i = 0; i < count; ++i) first_caller_[i + 1] += first_caller_[i];
  callers_.assign(calls.size(), 0);
  std::vector<uint32_t> next(first_caller_.begin(), first_caller_.end());
  for (const auto& [callee, caller] : calls) callers_[next[callee]++] = caller;  // by caller already
  return absl::OkStatus();
}

std::span<const FunctionIndex> ImageCode::CallersOf(FunctionIndex function) const {
  return std::span(callers_).subspan(first_caller_[function], first_caller_[function + 1] - first_caller_[function]);
}

bool ImageCode::IsLoaded(VirtualAddress address) const {
  return std::any_of(image_.segments().begin(), image_.segments().end(), [&](const LoadSegment& segment) {
    return address >= segment.address && address.value - segment.address.value < segment.memory_bytes;
  });
}

ImageCode::References ImageCode::ReferencesOf(FunctionIndex function) const {
  References result;
  Scan(function, [&](const CodeReference& reference) {
    if (reference.kind == CodeReference::Kind::kBranch) {
      const auto callee = functions_.StartingAt(reference.target);
      if (callee && *callee != function) result.calls.push_back(*callee);
    } else if (IsLoaded(reference.target)) {
      result.data.push_back(reference.target);
    }
  });
  std::sort(result.calls.begin(), result.calls.end());
  std::sort(result.data.begin(), result.data.end());
  return result;
}

std::optional<FunctionIndex> ImageCode::FunctionInSlot(VirtualAddress slot) const {
  const std::optional<VirtualAddress> target = relocations_.At(slot);
  return target ? functions_.StartingAt(*target) : std::nullopt;
}

size_t ImageCode::TableSlots(VirtualAddress table) const {
  size_t slots = 0;
  while (slots < kMaxTableSlots && FunctionInSlot({table.value + slots * kSlotBytes})) ++slots;
  return slots;
}

bool ImageCode::BeginsWithFrame(FunctionIndex function) const {
  return image_.machine() == ElfMachine::kX64 ? x64::BeginsWithFrame(Code(function))
                                              : arm64::BeginsWithFrame(Code(function));
}

std::optional<VirtualAddress> ImageCode::CopiedGuid(FunctionIndex function) const {
  return image_.machine() == ElfMachine::kX64 ? x64::CopiedGuid(Code(function), Start(function))
                                              : arm64::CopiedGuid(Code(function), Start(function));
}

std::optional<JitReturnSite> ImageCode::ReturnOfCompileMethod(FunctionIndex function) const {
  return image_.machine() == ElfMachine::kX64 ? x64::ReturnOfCompileMethod(Code(function))
                                              : arm64::ReturnOfCompileMethod(Code(function));
}

std::optional<ImageCode::Thunk> ImageCode::JumpThunkOf(FunctionIndex function) const {
  const std::optional<JumpThunk> thunk = image_.machine() == ElfMachine::kX64
                                             ? x64::DecodeJumpThunk(Code(function), Start(function))
                                             : arm64::DecodeJumpThunk(Code(function), Start(function));
  const auto target = thunk ? functions_.StartingAt(thunk->target) : std::nullopt;
  if (!target || *target == function) return std::nullopt;
  return Thunk{*target, thunk->arguments};
}

}  // namespace clrsampler
