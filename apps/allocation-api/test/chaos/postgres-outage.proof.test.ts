// The same tests, at their full size.
import './postgres-outage.ci.test.ts'
