import PrismConfig
import Testing

@Suite("Bad configurations")
struct BadConfigurationTests {
  static let environment = ["MANY": "5000"]

  static func folder() throws -> ConfigurationFolder {
    let folder = try ConfigurationFolder([
      "prismd.yaml": "keys: [{id: k1, file: k1.key}]\n", "k1.key": "00112233445566778899aabbccddeeff",
      "cert.pem": FilesTests.certificate,
      "bad.key": "not hexadecimal, but secret", "key.pem": FilesTests.privateKey,
    ])
    try folder.write("open.key", "00112233445566778899aabbccddeeff", mode: 0o604)
    return folder
  }

  @Test(
    "each fault is shown with its line, with what is allowed",
    arguments: BadConfiguration.daemon + BadConfiguration.namespace)
  func corpus(bad: BadConfiguration) throws {
    let folder = try Self.folder()
    try folder.write(bad.file, bad.text)
    #expect(folder.faultLines(Self.environment) == bad.lines)
  }

  @Test("two inputs with one address are a fault of the second one") func oneAddress() throws {
    try corpus(
      bad:
        BadConfiguration(
          "inputs with one address", "prismd.yaml",
          """
          otlp: {listen: 9350}
          metrics: {listen: "0.0.0.0:9350"}
          statsd: {socket: /run/x.sock, listen: 9351}
          syslog: {socket: /run/./x.sock, listen: 9351}
          forward: {listen: "[::1]:9350"}

          """,
          [
            "prismd.yaml:1: otlp.listen: is 127.0.0.1:9350, where metrics.listen listens, too; give each its own",
            "prismd.yaml:4: syslog.socket: is /run/./x.sock, where statsd.socket listens, too; give each its own",
            "prismd.yaml:4: syslog.listen: is 127.0.0.1:9351, where statsd.listen listens, too; give each its own",
          ]))
  }
}
