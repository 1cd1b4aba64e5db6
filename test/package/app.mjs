// The program that bundles hold, as docs/install.md says.

import * as api from "proc-safe";
import * as native from "proc-safe/native";
import { conform } from "./conform.mjs";

import { join } from "node:path";
import { nativeStatus, setNativeBinding } from "proc-safe/native";

const { state, target } = nativeStatus(); // where the program is no bundle, it is "ready"
if (state !== "ready") setNativeBinding(join(import.meta.dirname, "prebuilds", `${target}.node`));

process.stdout.write(JSON.stringify(conform(api, native)));
