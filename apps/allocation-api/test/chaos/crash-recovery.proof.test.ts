// The same tests, at their full size.
import './crash-recovery.ci.test.ts'
