import { describeRfc2136 } from './rfc2136-suite.ts'
import { powerdns } from './support/rfc2136/powerdns.ts'

describeRfc2136(powerdns)
