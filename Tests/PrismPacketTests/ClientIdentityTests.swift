import PrismPacket
import Testing

/// Made by `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes`.
@Suite("A client's certificate and its key")
struct ClientIdentityTests {
  static let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBcDCCARegAwIBAgIUO5BUYeGx6sNb4Qb86iDyZDdq4ScwCgYIKoZIzj0EAwIw
    DjEMMAoGA1UEAwwDb25lMB4XDTI2MTEyMTEzNDc0MloXDTI2MTEyMzEzNDc0Mlow
    DjEMMAoGA1UEAwwDb25lMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEy0ht2D09
    YAbuwb52lkTjha50nbatNfBXWZa3VaBK+N7G/7/MqrvJ/++wOqj25s4EQ/WYmdGb
    l0pQO4Jgknh9A6NTMFEwHQYDVR0OBBYEFIfgikV6NJbrObaYSYeCz3IUr5hCMB8G
    A1UdIwQYMBaAFIfgikV6NJbrObaYSYeCz3IUr5hCMA8GA1UdEwEB/wQFMAMBAf8w
    CgYIKoZIzj0EAwIDRwAwRAIgF7h3UKUA9FUlkE5tTGu+sYcqXg6aEVJaiAHMkyKX
    ul4CICSzAbxJf2OWvpXFd4X7tzRk3vSJ2CIk2S3Y2vGSGr6X
    -----END CERTIFICATE-----
    """
  static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQghksEBNm+MfgoPJHx
    VWSRxjeAty8Q3t6JG39tZIKAJyChRANCAATLSG3YPT1gBu7BvnaWROOFrnSdtq01
    8FdZlrdVoEr43sb/v8yqu8n/77A6qPbmzgRD9ZiZ0ZuXSlA7gmCSeH0D
    -----END PRIVATE KEY-----
    """
  static let otherCertificate = """
    -----BEGIN CERTIFICATE-----
    MIIBcDCCARegAwIBAgIUAd7apPwT87vEhGzz2rhs6UMaBGMwCgYIKoZIzj0EAwIw
    DjEMMAoGA1UEAwwDdHdvMB4XDTI2MTEyMTEzNDc0MloXDTI2MTEyMzEzNDc0Mlow
    DjEMMAoGA1UEAwwDdHdvMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEC6levuh
    6hoLgBIxMXnYTSuJw1NjgeP5K3SphRswgj9uJK40XMQDuH8PX6QKHQ8jk25Pz+62
    +MB8MPJuP+upLKNTMFEwHQYDVR0OBBYEFN36Isv3l399d2jI/jfJVmpkrjkLMB8G
    A1UdIwQYMBaAFN36Isv3l399d2jI/jfJVmpkrjkLMA8GA1UdEwEB/wQFMAMBAf8w
    CgYIKoZIzj0EAwIDRwAwRAIgD2Ny+/gb38ZL/fthiSPLTikKYVcH/wmXdZbZqyef
    dtICID9sHWRPGaUpEaR+eQTUKRkQwBCT8vwodECMf3qm3syc
    -----END CERTIFICATE-----
    """

  static let cases: [(certificate: String, key: String, fault: String?)] = [
    (certificate, key, nil), ("a comment\n" + certificate + "\n" + otherCertificate, key, nil),
    (otherCertificate, key, "the key is not that of the first certificate there"),
    (otherCertificate + "\n" + certificate, key, "the key is not that of the first certificate there"),
    (key, key, "the first certificate there cannot be read"), ("", key, "the first certificate there cannot be read"),
    (certificate, certificate, "the key cannot be read"), (certificate, "", "the key cannot be read"),
  ]

  @Test("belong together, or it is said why not", arguments: cases)
  func fault(certificate: String, key: String, fault: String?) {
    #expect(ClientIdentity.fault(certificate: Array(certificate.utf8), key: Array(key.utf8)) == fault)
  }
}
