// The program of a single executable application, as docs/install.md says.

import "./placeless.mjs";
import * as api from "proc-safe";
import * as native from "proc-safe/native";
import { conform } from "./conform.mjs";

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getAsset } from "node:sea";
import { setNativeBinding } from "proc-safe/native";

const file = join(mkdtempSync(join(tmpdir(), "app-")), "proc-safe.node");
writeFileSync(file, new Uint8Array(getAsset("proc-safe.node")));
setNativeBinding(file);

process.stdout.write(JSON.stringify(conform(api, native)));
