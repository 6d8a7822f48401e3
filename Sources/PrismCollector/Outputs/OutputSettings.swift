import PrismBase
public import PrismConfig

/// One entry of `outputs`.
public struct OutputSettings: Sendable, Equatable {
  enum Kind: Sendable, Equatable {
    /// nil: standard output.
    case ndjson(RotatingFile.Options?)
    case otlp(OTLPOutput.Options)
    case kafka(KafkaOutput.Options)
    case clickHouse(ClickHouseOutput.Options)
  }

  /// Where it came to is noted under this name.
  let name: String
  let kind: Kind

  func output(_ time: any TimeSource) -> any ReportOutput {
    switch kind {
    case .ndjson(let options): NDJSONOutput(options, name: name, time: time)
    case .otlp(let options): OTLPOutput(options)
    case .kafka(let options): KafkaOutput(options, time: time)
    case .clickHouse(let options): ClickHouseOutput(options, name: name)
    }
  }
}

extension OutputSettings {
  /// Takes what was checked with the file.
  public init(_ output: CollectorConfiguration.Output) {
    name = output.name
    switch output.target {
    case .ndjson(nil, _, _, _): kind = .ndjson(nil)
    case .ndjson(let folder?, let compresses, let bytesMax, let age):
      kind = .ndjson(.init(folder: folder, compresses: compresses, bytesMax: bytesMax, age: age))
    case .otlp(let url, let headers, let encoding, let timeout):
      kind = .otlp(.init(url: url, headers: headers, encoding: encoding, timeout: timeout))
    case .kafka(let brokers, let topic, let propertiesFile, let timeout):
      kind = .kafka(.init(brokers: brokers, topic: topic, propertiesFile: propertiesFile, timeout: timeout))
    case .clickHouse(let url, let database, let user, let passwordFile, let timeout):
      kind = .clickHouse(
        .init(url: url, database: database, user: user, passwordFile: passwordFile, timeout: timeout))
    }
  }
}
