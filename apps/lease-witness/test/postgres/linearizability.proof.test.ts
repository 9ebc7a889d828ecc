import './linearizability.test.ts'
