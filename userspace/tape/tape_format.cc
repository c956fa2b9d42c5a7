#include "tape/tape_format.h"

#include <zstd.h>

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "os/tape_answer.h"

namespace clrsampler {
namespace {

bool InOrder(const std::vector<TapeAnswer>& answers, const TapeAnswer& next) {
  if (answers.empty()) return true;
  const TapeAnswer& last = answers.back();
  return next.iteration > last.iteration || (next.iteration == last.iteration && next.asked_before > last.asked_before);
}

}  // namespace

TapeContent ParseTape(absl::string_view records) {
  TapeContent tape;
  TapeReader in(records);
  while (in.ok() && !in.at_end()) {
    switch (in.Get<char>()) {
      case 'R':
        tape.run = in.GetText();
        break;
      case 'Q': {
        const absl::string_view text = in.GetText();
        if (in.ok()) tape.questions.push_back({text, {}});
        break;
      }
      case 'A': {
        const auto question = in.Get<uint32_t>();
        TapeAnswer answer{tape.iterations, in.Get<uint32_t>(), {}};
        answer.bytes = in.GetText();
        if (!in.ok() || question >= tape.questions.size()) return tape;
        std::vector<TapeAnswer>& answers = tape.questions[question].answers;
        if (!InOrder(answers, answer)) return tape;
        answers.push_back(answer);
        break;
      }
      case 'T':
        ++tape.iterations;
        break;
      case 'F': {
        FileOnTape file;
        for (uint64_t* number : {&file.device, &file.inode, &file.size, &file.modified_ns})
          *number = in.Get<uint64_t>();
        if (in.ok()) tape.files.push_back({file, {}});
        break;
      }
      case 'P': {
        const auto file = in.Get<uint32_t>();
        const auto offset = in.Get<uint64_t>();
        const absl::string_view bytes = in.GetText();
        if (!in.ok() || file >= tape.files.size()) return tape;
        TapeFile& its = tape.files[file];
        if (bytes.size() > its.file.size || offset > its.file.size - bytes.size()) return tape;
        its.pages.emplace_back(offset, bytes);
        break;
      }
      case 'E':
        tape.whole = in.ok() && in.at_end();
        return tape;
      default:
        return tape;
    }
  }
  return tape;
}

absl::StatusOr<std::string> UnpackTape(absl::string_view bytes, uint64_t max_bytes) {
  if (!absl::StartsWith(bytes, kTapeMagic) || bytes.size() <= kTapeMagic.size()) {
    return absl::DataLossError("not a saved stream of this version");
  }
  const char packing = bytes[kTapeMagic.size()];
  bytes.remove_prefix(kTapeMagic.size() + 1);
  if (packing == 'r') return std::string(bytes.substr(0, max_bytes));
  if (packing != 'z') return absl::DataLossError("not a saved stream of this version");
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  std::string unpacked;
  std::string block(ZSTD_DStreamOutSize(), '\0');
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  while (in.pos < in.size) {
    ZSTD_outBuffer out{block.data(), block.size(), 0};
    const size_t result = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(result)) {
      return absl::DataLossError(absl::StrCat("a damaged stream: ", ZSTD_getErrorName(result)));
    }
    if (unpacked.size() + out.pos > max_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat("a stream of more than ", max_bytes, " bytes"));
    }
    unpacked.append(block.data(), out.pos);
    if (out.pos == 0 && in.pos == in.size) break;
  }
  return unpacked;
}

}  // namespace clrsampler
