module portcullis.example/readers/go

go 1.21
