import { lacksGateway } from '../src/gateway.ts'

/** Without Ceph the tests are skipped, which is told in a line; where all parts must be there they run, and fail. */
export const isSkipped = lacksGateway !== undefined && process.env.REQUIRE_ALL_DEPS !== '1'
if (isSkipped) process.stderr.write(`${lacksGateway}\n`)
