// Reads a file of `Trace::write_dial9` with the parser of dial9, and checks what its viewer draws.
//
//     node read_dial9.js SKILLS FILE
//
// SKILLS is the folder of that name in the package dial9. Fails if a worker is parked twice in a row, an event is not
// understood, or a role overlaps another one of the same thread. Prints spans and handoffs.
"use strict";

const assert = require("assert");
const path = require("path");

const [skills, file] = process.argv.slice(2);
const { parseTrace, EVENT_TYPES } = require(path.join(path.resolve(skills), "dial9-toolkit/scripts/trace_parser.js"));

async function main() {
    const trace = await parseTrace(require("fs").readFileSync(file));

    const workers = trace.runtimeWorkers.get("main") ?? [];
    const parked = new Map();
    for (const event of trace.events) {
        const parks = event.eventType === EVENT_TYPES.WorkerPark;
        if (parks || event.eventType === EVENT_TYPES.WorkerUnpark) {
            assert(workers.includes(event.workerId), `the worker ${event.workerId} is not in the metadata`);
            assert.notStrictEqual(parked.get(event.workerId), parks, `the worker ${event.workerId} parks twice`);
            parked.set(event.workerId, parks);
        }
    }

    const spans = new Map();
    const roles = new Map();
    for (const { name, singleEventSpan: span } of trace.customEvents) {
        assert(span, `${name} is not shown as a span`);
        spans.set(name, (spans.get(name) ?? 0) + 1);
        if (name === "RoleEvent") {
            const former = roles.get(span.threadId);
            assert(!former || former.end <= span.start, `two roles of ${span.threadId} overlap at ${span.start}`);
            roles.set(span.threadId, span);
        }
    }
    for (const [name, count] of spans) console.log(`${count} spans ${name}`);

    for (const { workerId, fromTid, toTid, startNs, endNs } of trace.blockInPlaceGaps) {
        const [start, end] = [startNs, endNs].map((time) => `${((time - trace.minTs) / 1e6).toFixed(3)} ms`);
        console.log(`worker ${workerId}: handoff from thread ${fromTid} to ${toTid}, ${start} to ${end}`);
    }
    console.log(`started ${new Date(trace.clockOffsetNs / 1e6).toISOString()}`);
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
