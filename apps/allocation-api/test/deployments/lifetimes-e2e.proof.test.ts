import './lifetimes-e2e.ci.test.ts'
