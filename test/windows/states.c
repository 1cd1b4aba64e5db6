/* Windows processes in chosen states, all in one job that ends with this program. Prints their pids and
   proves their states as one line of JSON, once at the start and once for each line it reads; ends with
   its input. `recycle PID` as a line first makes processes until one has that pid. */

#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TRIES = 4000 };

static HANDLE job;

static void fail(const char *what)
{
    fprintf(stderr, "%s: Windows error %lu\n", what, GetLastError());
    exit(1);
}

/* Starts this program in the job to do what the word says, suspended. */
static int try_start(const char *word, SECURITY_ATTRIBUTES *security, PROCESS_INFORMATION *made)
{
    char path[MAX_PATH], words[MAX_PATH + 32];
    if (GetModuleFileNameA(NULL, path, sizeof path) == 0)
        fail("GetModuleFileName");
    snprintf(words, sizeof words, "\"%s\" %s", path, word);
    STARTUPINFOA startup = { .cb = sizeof startup };
    if (!CreateProcessA(path, words, security, NULL, FALSE, CREATE_SUSPENDED, NULL, NULL, &startup, made))
        return 0;
    if (!AssignProcessToJobObject(job, made->hProcess))
        fail("AssignProcessToJobObject");
    return 1;
}

static PROCESS_INFORMATION start(const char *word, SECURITY_ATTRIBUTES *security)
{
    PROCESS_INFORMATION made;
    if (!try_start(word, security, &made))
        fail("CreateProcess");
    return made;
}

static void let_go(PROCESS_INFORMATION made)
{
    if (ResumeThread(made.hThread) == (DWORD)-1)
        fail("ResumeThread");
}

static int has_ended(HANDLE process)
{
    return WaitForSingleObject(process, 0) == WAIT_OBJECT_0;
}

/* How often its only thread is suspended. */
static DWORD suspensions(PROCESS_INFORMATION made)
{
    DWORD before = SuspendThread(made.hThread);
    if (before == (DWORD)-1 || ResumeThread(made.hThread) == (DWORD)-1)
        fail("SuspendThread");
    return before;
}

/* Whether this program itself may not open it so. */
static int is_refused(DWORD rights, DWORD pid)
{
    HANDLE process = OpenProcess(rights, FALSE, pid);
    if (process != NULL)
        CloseHandle(process);
    return process == NULL && GetLastError() == ERROR_ACCESS_DENIED;
}

/* Makes processes, which end at once, until one gets the pid; that one stays. */
static PROCESS_INFORMATION recycle(DWORD pid)
{
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        PROCESS_INFORMATION made;
        if (!try_start("wait", NULL, &made))
            continue; /* wine, once in a thousand */
        if (made.dwProcessId == pid)
            return made;
        TerminateProcess(made.hProcess, 0);
        WaitForSingleObject(made.hProcess, INFINITE);
        CloseHandle(made.hThread);
        CloseHandle(made.hProcess);
    }
    return (PROCESS_INFORMATION){ 0 };
}

/* Starts a process that outlives this one, and says its pid in the exit status. */
static int leave_orphan(void)
{
    char path[MAX_PATH], words[MAX_PATH + 32];
    GetModuleFileNameA(NULL, path, sizeof path);
    snprintf(words, sizeof words, "\"%s\" wait", path);
    STARTUPINFOA startup = { .cb = sizeof startup };
    PROCESS_INFORMATION made;
    if (!CreateProcessA(path, words, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &made))
        return 0;
    return (int)made.dwProcessId; /* in the job of its parent */
}

int main(int count, char **words)
{
    if (count > 1 && strcmp(words[1], "wait") == 0)
        for (;;)
            Sleep(INFINITE); /* until the job ends */
    if (count > 1 && strcmp(words[1], "end") == 0)
        return 0;
    if (count > 1 && strcmp(words[1], "orphan") == 0)
        return leave_orphan();

    job = CreateJobObjectA(NULL, NULL);
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = { 0 };
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    if (job == NULL || !SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits))
        fail("SetInformationJobObject");

    PROCESS_INFORMATION child = start("wait", NULL);
    let_go(child);
    PROCESS_INFORMATION suspended = start("wait", NULL);
    PROCESS_INFORMATION ended = start("end", NULL);
    let_go(ended);
    WaitForSingleObject(ended.hProcess, INFINITE); /* the handle stays open */

    PROCESS_INFORMATION parent = start("orphan", NULL);
    let_go(parent);
    WaitForSingleObject(parent.hProcess, INFINITE);
    DWORD orphan;
    if (!GetExitCodeProcess(parent.hProcess, &orphan) || orphan == 0)
        fail("the orphan");
    CloseHandle(parent.hThread);
    CloseHandle(parent.hProcess); /* nobody has it any more: its pid is free */

    ACL nobody;
    SECURITY_DESCRIPTOR descriptor;
    if (!InitializeAcl(&nobody, sizeof nobody, ACL_REVISION) ||
        !InitializeSecurityDescriptor(&descriptor, SECURITY_DESCRIPTOR_REVISION) ||
        !SetSecurityDescriptorDacl(&descriptor, TRUE, &nobody, FALSE))
        fail("SetSecurityDescriptorDacl");
    SECURITY_ATTRIBUTES security = { sizeof security, &descriptor, FALSE };
    PROCESS_INFORMATION refused = start("wait", &security);
    let_go(refused);

    BYTE everyone[SECURITY_MAX_SID_SIZE];
    DWORD size = sizeof everyone;
    union {
        ACL list;
        BYTE room[256];
    } some;
    if (!CreateWellKnownSid(WinWorldSid, NULL, everyone, &size) ||
        !InitializeAcl(&some.list, sizeof some, ACL_REVISION) ||
        !AddAccessAllowedAce(&some.list, ACL_REVISION, PROCESS_QUERY_LIMITED_INFORMATION, everyone) ||
        !SetSecurityDescriptorDacl(&descriptor, TRUE, &some.list, FALSE))
        fail("AddAccessAllowedAce");
    PROCESS_INFORMATION closed = start("wait", &security); /* may be looked at, but not into */
    let_go(closed);

    int wine = GetProcAddress(GetModuleHandleA("ntdll.dll"), "wine_get_version") != NULL;
    PROCESS_INFORMATION recycled = { 0 };
    char line[64];
    do {
        printf("{\"wine\":%s,\"self\":%lu,\"child\":%lu,\"childEnded\":%d,\"suspended\":%lu,\"suspensions\":%lu,"
               "\"ended\":%lu,\"endedEnded\":%d,\"orphan\":%lu,\"orphansParent\":%lu,\"refused\":%lu,"
               "\"isRefused\":%d,\"closed\":%lu,\"isClosed\":%d,\"recycled\":%lu}\n",
               wine ? "true" : "false", GetCurrentProcessId(), child.dwProcessId, has_ended(child.hProcess),
               suspended.dwProcessId, suspensions(suspended), ended.dwProcessId, has_ended(ended.hProcess), orphan,
               parent.dwProcessId, refused.dwProcessId,
               is_refused(PROCESS_QUERY_LIMITED_INFORMATION, refused.dwProcessId), closed.dwProcessId,
               is_refused(PROCESS_VM_READ, closed.dwProcessId) &&
                   !is_refused(PROCESS_QUERY_LIMITED_INFORMATION, closed.dwProcessId),
               recycled.dwProcessId);
        fflush(stdout);
        if (fgets(line, sizeof line, stdin) == NULL)
            break;
        if (strncmp(line, "recycle ", 8) == 0)
            recycled = recycle(strtoul(line + 8, NULL, 10));
    } while (1);
    CloseHandle(job); /* ends all */
    return 0;
}
