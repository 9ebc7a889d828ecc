import './installed.ci.test.ts'
