/* What is known of a libcoreclr.so before its memory is read: its exports and its version mark. */
extern const char clr_version[];
const char clr_version[] = "@(#)Version 8.0.3026.36801 @Commit: none";
void *g_dacTable[32] = {(void *)1};

int coreclr_initialize(void);
int coreclr_initialize(void) { return clr_version[0]; }
