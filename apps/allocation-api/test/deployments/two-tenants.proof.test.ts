// The same tests, at their full size.
import './two-tenants.ci.test.ts'
