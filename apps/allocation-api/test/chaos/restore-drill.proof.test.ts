import './restore-drill.ci.test.ts'
