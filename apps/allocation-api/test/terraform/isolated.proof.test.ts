import './destroy.ci.test.ts'
import './known-state.ci.test.ts'
import './locks.ci.test.ts'
import './plan.ci.test.ts'
