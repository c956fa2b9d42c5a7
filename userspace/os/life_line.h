// A process that ends with another one, whatever it does.
#ifndef CLRSAMPLER_OS_LIFE_LINE_H_
#define CLRSAMPLER_OS_LIFE_LINE_H_

namespace clrsampler {

// The kernel sends SIGKILL to the calling process when the last write end of the pipe is closed. The signal goes out in
// the name of the process itself, so the one that closes needs no right to send it. False: it can't be had, or all
// write ends are closed already. Linux only: fcntl(2), F_SETSIG.
bool EndWithPipe(int read_end);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_LIFE_LINE_H_
