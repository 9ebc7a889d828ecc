import './clients.ci.test.ts'
