import './hostile-clients.ci.test.ts'
