// The same tests, at their full size.
import './schemathesis.ci.test.ts'
