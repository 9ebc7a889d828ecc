// Imported before a service, on any version of Node: one that cannot run the sources would end with a stack trace.

const REQUIRED = 24
const EXIT_INVALID_CONFIG = 2

if (Number.parseInt(process.versions.node, 10) < REQUIRED) {
  process.stderr.write(`Node ${process.versions.node} cannot run this service. Install Node ${REQUIRED} or later.\n`)
  process.exit(EXIT_INVALID_CONFIG)
}
