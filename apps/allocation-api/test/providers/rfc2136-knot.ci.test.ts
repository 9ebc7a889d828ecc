import { describeRfc2136 } from './rfc2136-suite.ts'
import { knot } from './support/rfc2136/knot.ts'

describeRfc2136(knot)
