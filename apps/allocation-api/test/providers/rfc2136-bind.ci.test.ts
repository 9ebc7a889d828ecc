import { describeRfc2136 } from './rfc2136-suite.ts'
import { bind } from './support/rfc2136/bind.ts'

describeRfc2136(bind)
