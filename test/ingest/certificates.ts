// Self-signed certificates for localhost that only tests use, valid for a hundred years: making them would need a tool
// that a server may not have. Their keys protect nothing.

export type TestCertificate = { readonly cert: string; readonly key: string }

/** Common name `first`. */
export const firstCertificate: TestCertificate = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBkzCCATmgAwIBAgIUIhmtCnR6FhFC73egudDJ3dEFLyIwCgYIKoZIzj0EAwIw
EDEOMAwGA1UEAwwFZmlyc3QwIBcNMjYxMTIwMTE0NTIyWhgPMjEyNjEwMjcxMTQ1
MjJaMBAxDjAMBgNVBAMMBWZpcnN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
QYw3acOis1QMfTdCeJxdodITGWTSRtnzG0rQ4AtgerGhTNtZ+yGh1acweHDoB6bk
3nxpUdyahTuOt0QUpYAG0KNvMG0wHQYDVR0OBBYEFDN0hKHgLj2+1VolMXTOFw12
+u+zMB8GA1UdIwQYMBaAFDN0hKHgLj2+1VolMXTOFw12+u+zMA8GA1UdEwEB/wQF
MAMBAf8wGgYDVR0RBBMwEYcEfwAAAYIJbG9jYWxob3N0MAoGCCqGSM49BAMCA0gA
MEUCIB9ynOl1BCBbiKgBXvcXsK0vYloMNHd2vBWB9re8C4fGAiEAliKlasfZb+r7
StzYNQ1tjfuKkMzVcPjMfHCScXIS19U=
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgg6WEsQX+kDGULBWc
TBeKMoSKhqis6qNUALVOAQb0Gc2hRANCAARBjDdpw6KzVAx9N0J4nF2h0hMZZNJG
2fMbStDgC2B6saFM21n7IaHVpzB4cOgHpuTefGlR3JqFO463RBSlgAbQ
-----END PRIVATE KEY-----
`,
}

/** Common name `second`. */
export const secondCertificate: TestCertificate = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBlTCCATugAwIBAgIURSba34UHaedZ6MSzB7zVcR/vdHEwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGc2Vjb25kMCAXDTI2MTEyMDExNDUyMloYDzIxMjYxMDI3MTE0
NTIyWjARMQ8wDQYDVQQDDAZzZWNvbmQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AATpWpN6Dwu/rt/HIge4So0wPbMN/J7nKdZqJQ9FcWNm4bKqP93HJ9+CosnPNDxA
YbG1iOpkyG10fXYkNmVeSncEo28wbTAdBgNVHQ4EFgQU7OVvIPtqQvpXNWsUrr8k
RtAG54kwHwYDVR0jBBgwFoAU7OVvIPtqQvpXNWsUrr8kRtAG54kwDwYDVR0TAQH/
BAUwAwEB/zAaBgNVHREEEzARhwR/AAABgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
SAAwRQIhAL/dEJVQbgwlz2fDgvTOQpToNrpiFYbwwLGgfbIfSOxaAiAr925bJscb
8RLoN+jaUT0lwOtDmH+q2dcR9NCLu1Xpcg==
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgAK3/M3xMiWGNahtH
Pdljtbw0twiyxqsczZuo9fOKJEyhRANCAATpWpN6Dwu/rt/HIge4So0wPbMN/J7n
KdZqJQ9FcWNm4bKqP93HJ9+CosnPNDxAYbG1iOpkyG10fXYkNmVeSncE
-----END PRIVATE KEY-----
`,
}
