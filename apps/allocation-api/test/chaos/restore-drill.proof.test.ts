// The same tests, at their full size.
import './restore-drill.ci.test.ts'
