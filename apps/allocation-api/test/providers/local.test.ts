import { describeConformance } from './conformance.ts'
import { startLocalSubject } from './support/local.ts'

describeConformance('local', startLocalSubject, { hasKey: false, hasEveryZone: true })
