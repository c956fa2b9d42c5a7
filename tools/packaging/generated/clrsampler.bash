# bash completion of clrsampler
_clrsampler() {
  local current=$2 previous=$3 command= word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$command $word" in ' record'|' replay'|' top'|' serve'|' ps'|' doctor'|' jitdump'|' r2rmap'|' names'|' stacks'|' pauses'|' allocs'|' wall'|' locks'|' threadpool'|' exceptions'|' jit'|' events'|' attach'|' convert'|' merge'|' annotate'|' diff'|' report'|' mcp'|' mip') command=$word ;; *' --') compopt -o default; return ;;
      'mip create'|'mip merge'|'mip show'|'mip order'|'mip covered'|'mip info'|'mip to-yaml'|'mip from-yaml') command+=" $word" ;; esac
  done
  local words= values=
  case $command in
    '')
      words='record replay top serve ps doctor jitdump r2rmap names stacks pauses allocs wall locks threadpool exceptions jit events attach convert merge annotate diff report mcp mip -h --help -V --version -p --pid -d --duration -F --frequency -o --output --format --focus --ignore --thread --from --to --no-kernel --fold-recursion --module --order --annotate-source --stats --addresses -v --verbose -q --quiet --names --lines --pdb-path --code --embed-source --event --source --event-buffer --min-wait --wakers --view --mark-suspension --no-hooks --hook-budget --try-unknown-runtime --ring-bytes --unwind --async-stacks --max-frames --gap-words --stack-words --symbol-server --symbol-cache --symbol-cache-size --enable-perf-map --perf-map-cap --perf-map-time --cri-socket --save-stream'
      case $previous in
        -p|--pid) values=:pids ;;
        -d|--duration) values=:any ;;
        -F|--frequency) values=:any ;;
        -o|--output) values=:files ;;
        --format) values='folded json pprof speedscope firefox perfetto otlp html svg order callchain mip jitdump' ;;
        --focus) values=:any ;;
        --ignore) values=:any ;;
        --thread) values=:any ;;
        --from) values=:any ;;
        --to) values=:any ;;
        --module) values=:any ;;
        --order) values='hot first' ;;
        --stats) values=:files ;;
        --names) values='short full raw' ;;
        --pdb-path) values=:folders ;;
        --event) values='cpu alloc exception contention off-cpu wall' ;;
        --source) values='probe eventpipe' ;;
        --event-buffer) values=:any ;;
        --min-wait) values=:any ;;
        --view) values='cpu pause suspend-delay jit' ;;
        --hook-budget) values=:any ;;
        --ring-bytes) values=:any ;;
        --unwind) values='tables frame-pointers' ;;
        --max-frames) values=:any ;;
        --gap-words) values=:any ;;
        --stack-words) values=:any ;;
        --symbol-server) values=:any ;;
        --symbol-cache) values=:folders ;;
        --symbol-cache-size) values=:any ;;
        --perf-map-cap) values=:any ;;
        --perf-map-time) values=:any ;;
        --cri-socket) values=:any ;;
        --save-stream) values=:files ;;
      esac ;;
    record)
      words='-h --help -p --pid -d --duration -F --frequency -o --output --format --focus --ignore --thread --from --to --no-kernel --fold-recursion --module --order --annotate-source --stats --addresses -v --verbose -q --quiet --names --lines --pdb-path --code --embed-source --event --source --event-buffer --min-wait --wakers --view --mark-suspension --no-hooks --hook-budget --try-unknown-runtime --ring-bytes --unwind --async-stacks --max-frames --gap-words --stack-words --symbol-server --symbol-cache --symbol-cache-size --enable-perf-map --perf-map-cap --perf-map-time --cri-socket --save-stream'
      case $previous in
        -p|--pid) values=:pids ;;
        -d|--duration) values=:any ;;
        -F|--frequency) values=:any ;;
        -o|--output) values=:files ;;
        --format) values='folded json pprof speedscope firefox perfetto otlp html svg order callchain mip jitdump' ;;
        --focus) values=:any ;;
        --ignore) values=:any ;;
        --thread) values=:any ;;
        --from) values=:any ;;
        --to) values=:any ;;
        --module) values=:any ;;
        --order) values='hot first' ;;
        --stats) values=:files ;;
        --names) values='short full raw' ;;
        --pdb-path) values=:folders ;;
        --event) values='cpu alloc exception contention off-cpu wall' ;;
        --source) values='probe eventpipe' ;;
        --event-buffer) values=:any ;;
        --min-wait) values=:any ;;
        --view) values='cpu pause suspend-delay jit' ;;
        --hook-budget) values=:any ;;
        --ring-bytes) values=:any ;;
        --unwind) values='tables frame-pointers' ;;
        --max-frames) values=:any ;;
        --gap-words) values=:any ;;
        --stack-words) values=:any ;;
        --symbol-server) values=:any ;;
        --symbol-cache) values=:folders ;;
        --symbol-cache-size) values=:any ;;
        --perf-map-cap) values=:any ;;
        --perf-map-time) values=:any ;;
        --cri-socket) values=:any ;;
        --save-stream) values=:files ;;
      esac ;;
    replay)
      words='-h --help -o --output --format --focus --ignore --thread --from --to --no-kernel --fold-recursion --module --order --annotate-source --stats --addresses -v --verbose -q --quiet'
      case $previous in
        -o|--output) values=:files ;;
        --format) values='folded json pprof speedscope firefox perfetto otlp html svg order callchain mip jitdump' ;;
        --focus) values=:any ;;
        --ignore) values=:any ;;
        --thread) values=:any ;;
        --from) values=:any ;;
        --to) values=:any ;;
        --module) values=:any ;;
        --order) values='hot first' ;;
        --stats) values=:files ;;
      esac ;;
    top)
      words='-h --help -p --pid -F --frequency --interval --sort --filter -m --methods --addresses --once --lines --hook-budget'
      case $previous in
        -p|--pid) values=:pids ;;
        -F|--frequency) values=:any ;;
        --interval) values=:any ;;
        --sort) values='cpu pause jit pid name' ;;
        --filter) values=:any ;;
        --lines) values=:any ;;
        --hook-budget) values=:any ;;
      esac ;;
    serve)
      words='-h --help --config -F --frequency --window --cgroup --container --comm --uid --names --lines --pdb-path --no-hooks --no-allocations --waits --hook-budget --try-unknown-runtime --enable-perf-map --perf-map-cap --perf-map-time --cri-socket --ring-bytes --history --no-history --history-size --history-age --listen --token-file --allow-anonymous-profiles --tls-cert --tls-key --allow-host --metrics-max-processes --textfile --push --push-by --push-header --otlp --otlp-by --otlp-header --otlp-ca --trigger --recordings --recordings-size --cpu-limit --memory-limit -v --verbose -q --quiet'
      case $previous in
        --config) values=:files ;;
        -F|--frequency) values=:any ;;
        --window) values=:any ;;
        --cgroup) values=:any ;;
        --container) values=:any ;;
        --comm) values=:any ;;
        --uid) values=:any ;;
        --names) values='short full raw' ;;
        --pdb-path) values=:folders ;;
        --hook-budget) values=:any ;;
        --perf-map-cap) values=:any ;;
        --perf-map-time) values=:any ;;
        --cri-socket) values=:any ;;
        --ring-bytes) values=:any ;;
        --history) values=:files ;;
        --history-size) values=:any ;;
        --history-age) values=:any ;;
        --listen) values=:any ;;
        --token-file) values=:files ;;
        --tls-cert) values=:files ;;
        --tls-key) values=:files ;;
        --allow-host) values=:any ;;
        --metrics-max-processes) values=:any ;;
        --textfile) values=:folders ;;
        --push) values=:any ;;
        --push-by) values='service process' ;;
        --push-header) values=:any ;;
        --otlp) values=:any ;;
        --otlp-by) values='service process' ;;
        --otlp-header) values=:any ;;
        --otlp-ca) values=:files ;;
        --trigger) values=:any ;;
        --recordings) values=:folders ;;
        --recordings-size) values=:any ;;
        --cpu-limit) values=:any ;;
        --memory-limit) values=:any ;;
      esac ;;
    ps)
      words='-h --help --json'
      case $previous in
      esac ;;
    doctor)
      words='-h --help -p --pid --json'
      case $previous in
        -p|--pid) values=:pids ;;
      esac ;;
    jitdump)
      words='-h --help'
      case $previous in
      esac ;;
    r2rmap)
      words='-h --help --write -o --output --reference'
      case $previous in
        -o|--output) values=:files ;;
        --reference) values=:folders ;;
      esac ;;
    names)
      words='-h --help -p --pid --addresses --random --seed --without --names --lines --pdb-path'
      case $previous in
        -p|--pid) values=:pids ;;
        --addresses) values=:files ;;
        --random) values=:any ;;
        --seed) values=:any ;;
        --without) values='files perf-map jitdump images memory' ;;
        --names) values='short full raw' ;;
        --pdb-path) values=:folders ;;
      esac ;;
    stacks)
      words='-h --help -p --pid --names --lines --pdb-path --json'
      case $previous in
        -p|--pid) values=:pids ;;
        --names) values='short full raw' ;;
        --pdb-path) values=:folders ;;
      esac ;;
    pauses)
      words='-h --help -p --pid -d --duration --names --json -F --frequency'
      case $previous in
        -p|--pid) values=:pids ;;
        -d|--duration) values=:any ;;
        --names) values='short full raw' ;;
        -F|--frequency) values=:any ;;
      esac ;;
    allocs)
      words='-h --help -p --pid -d --duration --names --json --source --event-buffer --hook-budget --rows'
      case $previous in
        -p|--pid) values=:pids ;;
        -d|--duration) values=:any ;;
        --names) values='short full raw' ;;
        --source) values='probe eventpipe' ;;
        --event-buffer) values=:any ;;
        --hook-budget) values=:any ;;
        --rows) values=:any ;;
      esac ;;
    wall)
      words='-h --help -p --pid -d --duration --names --json --min-wait --rows'
      case $previous in
        -p|--pid) values=:pids ;;
        -d|--duration) values=:any ;;
        --names) values='short full raw' ;;
        --min-wait) values=:any ;;
        --rows) values=:any ;;
      esac ;;
    locks)
      words='-h --help -p --pid -d --duration --names --json --min-wait --rows'
      case $previous in
        -p|--pid) values=:pids ;;
        -d|--duration) values=:any ;;
        --names) values='short full raw' ;;
        --min-wait) values=:any ;;
        --rows) values=:any ;;
      esac ;;
    threadpool)
      words='-h --help -p --pid -d --duration --names --json --min-wait --rows'
      case $previous in
        -p|--pid) values=:pids ;;
        -d|--duration) values=:any ;;
        --names) values='short full raw' ;;
        --min-wait) values=:any ;;
        --rows) values=:any ;;
      esac ;;
    exceptions)
      words='-h --help -p --pid -d --duration --names --json --lines --pdb-path --hook-budget --rows --frames'
      case $previous in
        -p|--pid) values=:pids ;;
        -d|--duration) values=:any ;;
        --names) values='short full raw' ;;
        --pdb-path) values=:folders ;;
        --hook-budget) values=:any ;;
        --rows) values=:any ;;
        --frames) values=:any ;;
      esac ;;
    jit)
      words='-h --help -p --pid -d --duration --names --json --lines --pdb-path'
      case $previous in
        -p|--pid) values=:pids ;;
        -d|--duration) values=:any ;;
        --names) values='short full raw' ;;
        --pdb-path) values=:folders ;;
      esac ;;
    events)
      words='-h --help -p --pid -d --duration --format --kind --source --with-library --library-socket --buffer'
      case $previous in
        -p|--pid) values=:pids ;;
        -d|--duration) values=:any ;;
        --format) values='text json' ;;
        --kind) values='ThreadCreated ThreadDestroyed ThreadNameChanged AssemblyLoadFinished AssemblyUnloadFinished ModuleLoadFinished ModuleUnloadFinished JITCompilationStarted JITCompilationFinished FunctionUnloadStarted ExceptionThrown ExceptionSearchFilterEnter ExceptionSearchFilterLeave ExceptionUnwindFinallyEnter ExceptionUnwindFinallyLeave ExceptionCatcherEnter ExceptionCatcherLeave ThreadBlockedMonitor ThreadAcquiredMonitor RuntimeSuspendStarted RuntimeSuspendFinished RuntimeResumeStarted RuntimeResumeFinished GarbageCollectionStarted GarbageCollectionFinished ObjectAllocated ThreadAssignedToOSThread ModuleUnloadStarted ModuleAttachedToAssembly ClassLoadFinished ClassUnloadStarted ExceptionSearchFunctionEnter ExceptionSearchFunctionLeave ExceptionSearchCatcherFound ExceptionUnwindFunctionEnter ExceptionUnwindFunctionLeave RuntimeSuspendAborted RuntimeThreadSuspended RuntimeThreadResumed MovedReferences ILToNativeMap' ;;
        --source) values='eventpipe probe' ;;
        --library-socket) values=:any ;;
        --buffer) values=:any ;;
      esac ;;
    attach)
      words='-h --help -p --pid -d --duration --kind --json'
      case $previous in
        -p|--pid) values=:pids ;;
        -d|--duration) values=:any ;;
        --kind) values='ThreadCreated ThreadDestroyed ThreadAssignedToOSThread ThreadNameChanged AssemblyLoadFinished AssemblyUnloadFinished ModuleLoadFinished ModuleUnloadStarted ModuleUnloadFinished ModuleAttachedToAssembly ClassLoadFinished ClassUnloadStarted JITCompilationStarted JITCompilationFinished FunctionUnloadStarted ExceptionThrown ExceptionSearchFunctionEnter ExceptionSearchFunctionLeave ExceptionSearchFilterEnter ExceptionSearchFilterLeave ExceptionSearchCatcherFound ExceptionUnwindFunctionEnter ExceptionUnwindFunctionLeave ExceptionUnwindFinallyEnter ExceptionUnwindFinallyLeave ExceptionCatcherEnter ExceptionCatcherLeave RuntimeSuspendStarted RuntimeSuspendFinished RuntimeSuspendAborted RuntimeResumeStarted RuntimeResumeFinished RuntimeThreadSuspended RuntimeThreadResumed GarbageCollectionStarted GarbageCollectionFinished MovedReferences ObjectAllocated ILToNativeMap' ;;
      esac ;;
    convert)
      words='-h --help -o --output --format --focus --ignore --thread --from --to --no-kernel --fold-recursion --module --order'
      case $previous in
        -o|--output) values=:files ;;
        --format) values='folded json pprof speedscope firefox perfetto otlp html svg order callchain mip jitdump' ;;
        --focus) values=:any ;;
        --ignore) values=:any ;;
        --thread) values=:any ;;
        --from) values=:any ;;
        --to) values=:any ;;
        --module) values=:any ;;
        --order) values='hot first' ;;
      esac ;;
    merge)
      words='-h --help -o --output --format --focus --ignore --thread --from --to --no-kernel --fold-recursion --module --order'
      case $previous in
        -o|--output) values=:files ;;
        --format) values='folded json pprof speedscope firefox perfetto otlp html svg order callchain mip jitdump' ;;
        --focus) values=:any ;;
        --ignore) values=:any ;;
        --thread) values=:any ;;
        --from) values=:any ;;
        --to) values=:any ;;
        --module) values=:any ;;
        --order) values='hot first' ;;
      esac ;;
    annotate)
      words='-h --help -p --pid -d --duration --all'
      case $previous in
        -p|--pid) values=:pids ;;
        -d|--duration) values=:any ;;
      esac ;;
    diff)
      words='-h --help -o --output --by --top --focus --ignore --thread --from --to --no-kernel --fold-recursion'
      case $previous in
        -o|--output) values=:files ;;
        --by) values='share cpu-time' ;;
        --top) values=:any ;;
        --focus) values=:any ;;
        --ignore) values=:any ;;
        --thread) values=:any ;;
        --from) values=:any ;;
        --to) values=:any ;;
      esac ;;
    report)
      words='-h --help -p --pid -d --duration --budget --json'
      case $previous in
        -p|--pid) values=:pids ;;
        -d|--duration) values=:any ;;
        --budget) values=:any ;;
      esac ;;
    mcp)
      words='-h --help --record'
      case $previous in
      esac ;;
    mip)
      words='create merge show order covered info to-yaml from-yaml -h --help'
      case $previous in
      esac ;;
    'mip create')
      words='-h --help -p --profile --mip-layout'
      case $previous in
        -p|--profile) values=:files ;;
        --mip-layout) values='documented llvm' ;;
      esac ;;
    'mip merge')
      words='-h --help -p --profile --strict --force --mip-layout'
      case $previous in
        -p|--profile) values=:files ;;
        --mip-layout) values='documented llvm' ;;
      esac ;;
    'mip show')
      words='-h --help -p --profile -r --regex --debug --json -o --output'
      case $previous in
        -p|--profile) values=:files ;;
        -r|--regex) values=:any ;;
        --debug) values=:files ;;
        -o|--output) values=:files ;;
      esac ;;
    'mip order')
      words='-h --help -p --profile -r --regex --json -o --output'
      case $previous in
        -p|--profile) values=:files ;;
        -r|--regex) values=:any ;;
        -o|--output) values=:files ;;
      esac ;;
    'mip covered')
      words='-h --help -p --profile -r --regex --debug --lines --paths --json -o --output'
      case $previous in
        -p|--profile) values=:files ;;
        -r|--regex) values=:any ;;
        --debug) values=:files ;;
        -o|--output) values=:files ;;
      esac ;;
    'mip info')
      words='-h --help -p --profile --json -o --output'
      case $previous in
        -p|--profile) values=:files ;;
        -o|--output) values=:files ;;
      esac ;;
    'mip to-yaml')
      words='-h --help -p --profile -r --regex --debug --json -o --output'
      case $previous in
        -p|--profile) values=:files ;;
        -r|--regex) values=:any ;;
        --debug) values=:files ;;
        -o|--output) values=:files ;;
      esac ;;
    'mip from-yaml')
      words='-h --help -p --profile --mip-layout'
      case $previous in
        -p|--profile) values=:files ;;
        --mip-layout) values='documented llvm' ;;
      esac ;;
  esac
  case $values in
    :files) mapfile -t COMPREPLY < <(compgen -f -- "$current"); compopt -o filenames; return ;;
    :folders) mapfile -t COMPREPLY < <(compgen -d -- "$current"); compopt -o filenames; return ;;
    :pids) words=$(cd /proc && echo [0-9]*) ;;
    :any) return ;;
    ?*) words=$values ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  if [[ ! ${COMPREPLY[*]} && $command ]]; then compopt -o default; fi
}
complete -F _clrsampler clrsampler
