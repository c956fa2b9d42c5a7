// The output of ps and doctor: a table or lines for people, JSON for programs. Pure.
//
// Names come from processes that anybody may run: nothing in them reaches a terminal as a control sequence.
#ifndef CLRSAMPLER_INSPECT_INSPECT_TEXT_H_
#define CLRSAMPLER_INSPECT_INSPECT_TEXT_H_

#include <string>
#include <vector>

#include "inspect/finding.h"
#include "inspect/process_facts.h"
#include "inspect/process_list.h"

namespace clrsampler {

// One line a process, columns aligned, and a last line that counts the others.
std::string ProcessTableText(const ProcessList& list);
std::string ProcessListJson(const ProcessList& list);

struct ProcessReport {
  uint32_t pid = 0;
  std::string comm;
  Findings findings;
};

struct DoctorReport {
  Findings host;
  std::vector<ProcessReport> processes;
  bool will_work = false;
};

std::string DoctorText(const DoctorReport& report);
std::string DoctorJson(const DoctorReport& report);

}  // namespace clrsampler

#endif  // CLRSAMPLER_INSPECT_INSPECT_TEXT_H_
