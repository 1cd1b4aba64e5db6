// The main thread, one Worker, then two at once.

import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import * as api from "proc-safe";
import * as native from "proc-safe/native";
import { conform } from "./conform.mjs";

if (isMainThread) {
  const answers = [conform(api, native), await inWorker(), ...(await Promise.all([inWorker(), inWorker()]))];
  process.stdout.write(JSON.stringify({ threads: answers.length }));
} else {
  parentPort.postMessage(conform(api, native));
}

function inWorker() {
  return new Promise((resolve, reject) => {
    const worker = new Worker(fileURLToPath(import.meta.url));
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", (status) => reject(new Error(`the Worker ended with ${status}`)));
  });
}
