"""System calls made by another process: as an attacker would make them who has taken it over. x86-64, as root.

    with Injector(pid) as process:
        process.call("openat", -100, "/etc/passwd", 1)      -13: errno as the kernel returns it
"""
import ctypes
import os
import signal

# arch/x86/entry/syscalls/syscall_64.tbl
NUMBERS = {"open": 2, "close": 3, "socket": 41, "fork": 57, "execve": 59, "kill": 62, "unlink": 87, "ptrace": 101, "setuid": 105,
           "setresuid": 117, "setfsuid": 122, "mount": 165, "init_module": 175, "unshare": 272, "openat": 257,
           "process_vm_writev": 311, "bpf": 321, "mprotect": 10, "mmap": 9}
ATTACH, DETACH, SINGLESTEP, GETREGS, SETREGS = 16, 17, 9, 12, 13
FIELDS = ("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax", "rip", "cs",
          "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs")
ARGUMENTS = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
SYSCALL = b"\x0f\x05"


class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in FIELDS]


class Injector:
    """Stops the process's first thread inside of a system call that waits, and lets it go on with it at the end."""

    def __init__(self, pid):
        self.pid = pid
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.libc.ptrace.restype = ctypes.c_long

    def ptrace(self, request, data=None):
        if self.libc.ptrace(request, self.pid, None, data) != 0:
            raise OSError(ctypes.get_errno(), f"ptrace {request}")

    def wait(self):
        status = os.waitpid(self.pid, 0x40000000)[1]  # __WALL
        if not os.WIFSTOPPED(status):
            raise AssertionError(f"process {self.pid} ended: {status}")
        return os.WSTOPSIG(status)

    def __enter__(self):
        while True:
            self.ptrace(ATTACH)
            while self.wait() != signal.SIGSTOP:
                pass
            self.before = Registers()
            self.ptrace(GETREGS, ctypes.byref(self.before))
            with open(f"/proc/{self.pid}/mem", "rb") as memory:
                memory.seek(self.before.rip - 2)
                if memory.read(2) == SYSCALL:
                    return self
            self.ptrace(DETACH)  # at work; another try

    def __exit__(self, *_):
        self.ptrace(SETREGS, ctypes.byref(self.before))
        self.ptrace(DETACH)

    def call(self, name, *arguments):
        """The kernel's answer: a value, or the negative of errno. Texts are put below the thread's stack."""
        registers = Registers.from_buffer_copy(self.before)
        place = (self.before.rsp - 8192) & ~0xF
        with open(f"/proc/{self.pid}/mem", "r+b", buffering=0) as memory:
            for register, value in zip(ARGUMENTS, arguments):
                if isinstance(value, str):
                    memory.seek(place)
                    memory.write(value.encode() + b"\0")
                    value, place = place, place + 512
                setattr(registers, register, value & (1 << 64) - 1)
        registers.rax, registers.orig_rax, registers.rip = NUMBERS[name], (1 << 64) - 1, self.before.rip - 2
        self.ptrace(SETREGS, ctypes.byref(registers))
        self.ptrace(SINGLESTEP)
        while self.wait() != signal.SIGTRAP:
            self.ptrace(SINGLESTEP)
        self.ptrace(GETREGS, ctypes.byref(registers))
        return ctypes.c_int64(registers.rax).value
