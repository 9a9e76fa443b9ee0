# The formula of a tap. `cargo xtask dist` fills in version, address and checksum of the source archive.
class Portcullis < Formula
  desc "OAuth 2.1 protection for MCP endpoints, and the client for them"
  homepage "@URL@"
  url "@URL@/portcullis-@VERSION@.tar.gz"
  sha256 "@SHA256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "pkgconf" => :build
  depends_on "rust" => :build
  depends_on "openssl@3"

  def install
    ENV["OPENSSL_NO_VENDOR"] = "1"
    system "cargo", "install", *std_cargo_args(path: "crates/server")
    generate_completions_from_executable(bin/"portcullis", "completions")
    pkgetc.install "deploy/portcullis.toml"
  end

  service do
    run [opt_bin/"portcullis", "serve", "--config", etc/"portcullis/portcullis.toml"]
    keep_alive true
    log_path var/"log/portcullis.log"
    error_log_path var/"log/portcullis.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/portcullis --version")
    cp pkgetc/"portcullis.toml", testpath
    system bin/"portcullis", "check", "--config", testpath/"portcullis.toml"
  end
end
