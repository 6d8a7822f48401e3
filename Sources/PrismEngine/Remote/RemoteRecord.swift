import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol

/// The cache of remote configuration for a restart: a line with the format and a checksum, then JSON.
struct RemoteRecord: Sendable, Equatable {
  private static let format = "prism-remote-1"
  /// Several times the largest document: configurations on probation and taken back are in it, too.
  static let bytesMax = 4 * RemoteEnvelope.unpackedBytesMax
  static let answerBytesMax = RemoteEnvelope.bytesMax

  /// The server and its signer.
  var url: String
  var publicKey: [UInt8]?
  var layer: RemoteLayer
  var lastApplied: RemoteState.Applied?
  var lastFailed: RemoteState.Failed?

  init(
    url: String, publicKey: [UInt8]?, layer: RemoteLayer, lastApplied: RemoteState.Applied?,
    lastFailed: RemoteState.Failed?
  ) {
    (self.url, self.publicKey, self.layer) = (url, publicKey, layer)
    (self.lastApplied, self.lastFailed) = (lastApplied, lastFailed)
    // To the minute: that is how often a probation is worth a write.
    for (name, trial) in layer.trials {
      self.layer.trials[name]?.tried = .seconds(trial.tried.components.seconds / 60 * 60)
    }
  }

  struct Damaged: Error, Equatable, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }

  // MARK: Writing

  func bytes() throws(PacketError) -> [UInt8] {
    let json = json.bytes
    return Array("\(Self.format) \(try Checksum.sha256(json))\n".utf8) + json
  }

  private var json: JSONValue {
    [
      "url": .string(url), "publicKey": publicKey.map { .string(Base64.encode($0)) } ?? .null,
      "updateTime": .optional(layer.updateTime), "version": .optional(layer.version),
      "store": layer.store.map { .string($0) } ?? .null,
      "validUntil": .optional(layer.validUntil), "timeFloor": .optional(layer.timeFloor),
      "lastApplied": lastApplied.map { ["number": .int($0.number), "unixMs": .int($0.unixMilliseconds)] } ?? .null,
      "lastFailed": lastFailed.map {
        [
          "number": .optional($0.number), "reason": .string($0.reason), "unixMs": .int($0.unixMilliseconds),
        ]
      } ?? .null,
      "namespaces": .array(layer.offered.values.sorted { $0.name < $1.name }.map(\.json)),
      "trials": .object(
        layer.trials.sorted { $0.key < $1.key }.map { name, trial in
          .init(
            name.text,
            ["previous": trial.previous?.json ?? .null, "triedSeconds": .int(trial.tried.components.seconds)]
          )
        }),
      "returned": .object(
        layer.returned.sorted { $0.key < $1.key }.map { name, back in
          .init(name.text, ["failed": back.failed?.json ?? .null, "previous": back.previous?.json ?? .null])
        }),
    ]
  }

  // MARK: Reading

  init(bytes: [UInt8]) throws(Damaged) {
    let head = bytes.prefix { $0 != UInt8(ascii: "\n") }
    let body = Array(bytes.dropFirst(head.count + 1))
    let checksum = try? Checksum.sha256(body)  // nil fits no head
    guard let checksum, String(decoding: head, as: UTF8.self) == "\(Self.format) \(checksum)" else {
      throw Damaged("its checksum does not fit")
    }
    do { try self.init(try JSONValue(parsing: body)) } catch let fault as ConfigurationFaults {
      throw Damaged(fault.description)
    } catch { throw Damaged("\(error)") }
  }

  private init(_ json: JSONValue) throws {
    guard let url = json["url"]?.string else { throw Damaged("it has no url") }
    var layer = RemoteLayer()
    (layer.updateTime, layer.version) = (json["updateTime"]?.int64, json["version"]?.int64)
    layer.store = json["store"]?.string
    (layer.validUntil, layer.timeFloor) = (json["validUntil"]?.int64, json["timeFloor"]?.int64)
    for entry in json["namespaces"]?.array ?? [] {
      let entry = try RemoteNamespace(parsing: entry)
      layer.offered[entry.name] = entry
    }
    for (name, trial) in Self.members(json["trials"]) {
      layer.trials[name] = RemoteLayer.Trial(
        previous: try Self.entry(trial["previous"]), tried: .seconds(trial["triedSeconds"]?.int64 ?? 0))
    }
    for (name, back) in Self.members(json["returned"]) {
      layer.returned[name] = RemoteLayer.Return(
        failed: try Self.entry(back["failed"]), previous: try Self.entry(back["previous"]))
    }
    self.init(
      url: url, publicKey: json["publicKey"]?.string.flatMap { Base64.decode(Array($0.utf8)) }, layer: layer,
      lastApplied: Self.applied(json["lastApplied"]), lastFailed: Self.failed(json["lastFailed"]))
  }

  private static func members(_ json: JSONValue?) -> [(NamespaceName, JSONValue)] {
    (json?.object ?? []).compactMap { member in NamespaceName(member.key).map { ($0, member.value) } }
  }

  private static func entry(_ json: JSONValue?) throws(ConfigurationFaults) -> RemoteNamespace? {
    guard let json, !json.isNull else { return nil }
    return try RemoteNamespace(parsing: json)
  }

  private static func applied(_ json: JSONValue?) -> RemoteState.Applied? {
    guard let number = json?["number"]?.int64, let time = json?["unixMs"]?.int64 else { return nil }
    return RemoteState.Applied(number: number, unixMilliseconds: time)
  }

  private static func failed(_ json: JSONValue?) -> RemoteState.Failed? {
    guard let reason = json?["reason"]?.string, let time = json?["unixMs"]?.int64 else { return nil }
    return RemoteState.Failed(number: json?["number"]?.int64, reason: reason, unixMilliseconds: time)
  }
}

extension JSONValue {
  static func optional(_ number: Int64?) -> JSONValue { number.map { .int($0) } ?? .null }
  fileprivate var int64: Int64? { int.map { Int64($0) } }
}
