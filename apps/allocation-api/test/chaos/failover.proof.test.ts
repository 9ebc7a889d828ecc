// The same tests, at their full size.
import './failover.ci.test.ts'
