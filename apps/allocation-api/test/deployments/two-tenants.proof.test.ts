import './two-tenants.ci.test.ts'
