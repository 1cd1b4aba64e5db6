// How the binding stands, and what a call answers then.

try {
  const { isSupported, listProcesses, nativeStatus, ProcSafeError } = await import("proc-safe");
  const { mode, state, error } = nativeStatus();
  let thrown;
  try {
    listProcesses();
  } catch (problem) {
    if (!(problem instanceof ProcSafeError)) throw problem;
    thrown = problem.details?.reason;
  }
  const answer = { mode, state, reason: error?.reason, supported: isSupported(), thrown };
  process.stdout.write(JSON.stringify(answer));
} catch (error) {
  process.stdout.write(JSON.stringify({ atImport: error.code, reason: error.details?.reason }));
}
