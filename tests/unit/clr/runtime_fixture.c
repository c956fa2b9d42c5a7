// Shared objects that export what the .NET runtimes export; which one is chosen by -D.
#define SHOWN __attribute__((visibility("default")))

#if defined(CORECLR) || defined(SINGLE_FILE)
SHOWN unsigned long g_dacTable[4] = {1};
SHOWN const char version_mark[] = "@(#)Version 10.0.1426.52326 @Commit: 0123456789012345678901234567890123456789";
#endif
#if defined(CORECLR) || defined(MONO)
SHOWN int coreclr_initialize(void) { return 1; }
#endif
#if defined(CORECLR)
SHOWN int DotNetRuntimeContractDescriptor = 1;
#endif
#if defined(SINGLE_FILE)
SHOWN char DotNetRuntimeInfo[112] = "DotNetRuntimeInfo";
#endif
#if defined(NATIVE_AOT)
SHOWN char DotNetRuntimeDebugHeader[64] = "DNDH\4";
// A program's own version first, then the core library's, as the metadata of 9.0.20 has them.
const char metadata[] =
    "1.2.3.0;1.2.3+ffffffffffffffffffffffffffffffffffffffff"
    "\x1c"
    "9.0.2026.41315i;\x99;^9.0.20+3879076d9a06ce098d37c38aaaaaaaaaaaaaaaaaaa";
SHOWN const char* keep(void) { return metadata; }
#endif
#if defined(IMPOSTOR)
SHOWN char DotNetRuntimeDebugHeader[64] = "other";
#endif
#if defined(STANDALONE_GC)
SHOWN int GC_Initialize(void) { return 1; }
SHOWN int GC_VersionInfo(void) { return 1; }
#endif
