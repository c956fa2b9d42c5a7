// Pushing to Pyroscope's /ingest: CPU time, allocations and waits of each service, as push_request.h writes them.
#ifndef CLRSAMPLER_EXPORT_PYROSCOPE_PUSH_H_
#define CLRSAMPLER_EXPORT_PYROSCOPE_PUSH_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "export/push_protocol.h"
#include "export/push_request.h"

namespace clrsampler {

struct PyroscopeOptions {
  std::string url;  // as ParsePushUrl gives it; empty: nothing is sent
  PushBy by = PushBy::kService;
  std::map<std::string, std::string> labels;  // of every profile: host
  std::vector<std::string> headers;           // "X-Scope-OrgID: shop", "Authorization: ..."
  size_t services = 50;                       // with profiles of their own
};

std::unique_ptr<PushProtocol> MakePyroscopeProtocol(const PyroscopeOptions& options);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_PYROSCOPE_PUSH_H_
