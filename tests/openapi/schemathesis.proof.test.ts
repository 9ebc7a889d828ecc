import './schemathesis.ci.test.ts'
