import './linearizability.ci.test.ts'
