// The agent at the socket that a program was given, as the library inside it sees it.
#ifndef CLRSAMPLER_INPROCESS_PEER_H_
#define CLRSAMPLER_INPROCESS_PEER_H_

namespace clrsampler {

// Root or the program's own user listens. Others would learn what the program does.
bool IsOfRootOrOurUser(int connection);

}  // namespace clrsampler

#endif  // CLRSAMPLER_INPROCESS_PEER_H_
