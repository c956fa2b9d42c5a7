// Questions and answers as the text of one datagram each.
#include "process/file_question.h"

namespace clrsampler {

std::string FileQuestionBytes(const FileQuestion& question) {
  TapeWriter out;
  out.Put(static_cast<uint8_t>(question.kind));
  out.PutText(question.proc_root);
  out.Put(question.pid);
  TapeCodec<std::optional<uint32_t>>::Write(question.owner, out);
  out.PutText(question.path);
  for (const uint64_t number :
       {question.start, question.end, question.device, question.inode, question.offset, question.bytes}) {
    out.Put(number);
  }
  out.Put(question.descriptor);
  return out.Take();
}

std::optional<FileQuestion> ParseFileQuestion(absl::string_view bytes) {
  TapeReader in(bytes);
  FileQuestion question;
  const auto kind = in.Get<uint8_t>();
  if (kind > static_cast<uint8_t>(FileQuestionKind::kLast)) return std::nullopt;
  question.kind = static_cast<FileQuestionKind>(kind);
  question.proc_root = std::string(in.GetText());
  question.pid = in.Get<uint32_t>();
  question.owner = TapeCodec<std::optional<uint32_t>>::Read(in);
  question.path = std::string(in.GetText());
  for (uint64_t* const number :
       {&question.start, &question.end, &question.device, &question.inode, &question.offset, &question.bytes}) {
    *number = in.Get<uint64_t>();
  }
  question.descriptor = in.Get<int32_t>();
  if (!in.ok() || !in.at_end()) return std::nullopt;
  return question;
}

std::string FileAnswerBytes(const FileAnswer& answer) {
  TapeWriter out;
  TapeCodec<absl::Status>::Write(answer.status, out);
  TapeCodec<struct stat>::Write(answer.file, out);
  out.Put(int64_t{answer.file.st_ctim.tv_sec});
  out.Put(int64_t{answer.file.st_ctim.tv_nsec});
  TapeCodec<bool>::Write(answer.may_wait, out);
  TapeCodec<bool>::Write(answer.on_fuse, out);
  TapeCodec<bool>::Write(answer.on_overlay, out);
  TapeCodec<bool>::Write(answer.metacopy, out);
  TapeCodec<std::optional<uint32_t>>::Write(answer.owner, out);
  out.Put(answer.mount_namespace);
  out.Put(answer.state);
  out.Put(answer.descriptor);
  out.PutText(answer.text);
  return out.Take();
}

std::optional<FileAnswer> ParseFileAnswer(absl::string_view bytes) {
  TapeReader in(bytes);
  FileAnswer answer;
  answer.status = TapeCodec<absl::Status>::Read(in);
  answer.file = TapeCodec<struct stat>::Read(in);
  answer.file.st_ctim.tv_sec = in.Get<int64_t>();
  answer.file.st_ctim.tv_nsec = in.Get<int64_t>();
  answer.may_wait = TapeCodec<bool>::Read(in);
  answer.on_fuse = TapeCodec<bool>::Read(in);
  answer.on_overlay = TapeCodec<bool>::Read(in);
  answer.metacopy = TapeCodec<bool>::Read(in);
  answer.owner = TapeCodec<std::optional<uint32_t>>::Read(in);
  answer.mount_namespace = in.Get<uint64_t>();
  answer.state = in.Get<uint8_t>();
  answer.descriptor = in.Get<int32_t>();
  answer.text = std::string(in.GetText());
  if (!in.ok() || !in.at_end()) return std::nullopt;
  return answer;
}

}  // namespace clrsampler
