// The same tests, at their full size.
import './local-run.ci.test.ts'
