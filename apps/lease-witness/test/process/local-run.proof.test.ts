import './local-run.ci.test.ts'
